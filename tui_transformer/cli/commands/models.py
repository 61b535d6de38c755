"""List the models that --model can name: built in, in installed packages, and in the cache of Hugging Face.

Example: tui-transformer models
"""

from __future__ import annotations

from tui_transformer.cli.typer_layer import single

app = single()


@app.command(help=__doc__)
def _models() -> None:
    from tui_transformer.cli.models import run

    run()
