"""Download a model into the cache of Hugging Face; needs the extra `fetch`.

Only the configuration, the safetensors weights and the files of the tokenizer are fetched.

Example: tui-transformer fetch org/name
"""

from __future__ import annotations

from typing import Annotated

import typer

from tui_transformer.cli.typer_layer import single

app = single()


@app.command(help=__doc__)
def _fetch(
    *, name: Annotated[str, typer.Argument(metavar="ORG/NAME", help="A model, as its page in the hub is called.")]
) -> None:
    from tui_transformer.cli.fetch import run

    run(name)
