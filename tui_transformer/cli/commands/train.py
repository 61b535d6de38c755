"""Train a model on a text file, from the beginning or from where it was stopped.

The folder --out is then a model as any other. Tasks: next-word, next-character and masked-word read a text;
classify reads lines of a text, a tab and its label; pairs reads lines of a source, a tab and a target. Loss and
accuracy are those of the batch; perplexity is e to the cross-entropy on examples that are not learned from.

Example: tui-transformer train text.txt --task next-word --out run
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.train_options import Given, takes_train_options
from tui_transformer.cli.typer_layer import single

app = single()


@app.command(help=__doc__)
@takes_train_options
def _train(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The text; a run that is resumed knows it.", show_default=False),
    ] = None,
    given: Given,
) -> None:
    from tui_transformer.cli.train import run

    run(file, given)
