"""Show the explorer in a browser; on this computer alone unless --host says otherwise.

The address that is printed has a token, without which nobody comes in. Visitors open and write files below --files
only; without it they open none, and an export is a download. They run no code. Of your own files the explorer reads
those of --model, --vocab and --tour. Your preferences and what you opened lately are not theirs.

Example: tui-transformer serve --model question --port 8000
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The explorer that is served, and where."""

    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where visitors come in; 0.0.0.0 for every network.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port.")] = 8000
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="How visitors see it, where that is another address.")
    ] = None
    visitors: Annotated[
        int, typer.Option("--visitors", min=1, max=1000, help="Sessions at a time: each visitor has a process.")
    ] = 8
    token: Annotated[
        bool,
        typer.Option("--token/--no-token", help="Whether nobody comes in without the secret of the address."),
    ] = True
    files: Annotated[
        Path | None,
        typer.Option("--files", metavar="FOLDER", help="Visitors open and write files below it; none without it."),
    ] = None
    idle: Annotated[
        float,
        typer.Option("--idle", metavar="MINUTES", min=0, help="Without a key for so long a session ends; 0 for never."),
    ] = 30.0
    tour: Annotated[str | None, typer.Option("--tour", metavar="FILE|NAME", help="Every session begins with it.")] = (
        None
    )
    theme: Annotated[
        str | None, typer.Option("--theme", metavar="NAME", help="Colours: dark, light, or one of Textual.")
    ] = None
