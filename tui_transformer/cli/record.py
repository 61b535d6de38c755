"""`record`: the stops of a tour as pictures."""

from __future__ import annotations

import os

from tui_transformer.cli.commands.record import Request
from tui_transformer.cli.output import note
from tui_transformer.cli.terminal import check_theme, parse_terminal_size
from tui_transformer.session.open_session import session_of
from tui_transformer.session.tour_stop import suitable


def run(request: Request) -> None:
    """Record what is asked for.

    Raises:
        InputError: The tour does not suit the model, or a picture cannot be written.
    """
    size = parse_terminal_size(request.size)
    if request.theme is not None:
        check_theme(request.theme)
    options = request.options()
    session = session_of(options.load(), request.reading(), options)
    told = suitable(session, request.tour)
    os.environ.setdefault("COLORTERM", "truecolor")
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    from tui_transformer.explorer.recording import file_name, png_drawing, record, write_picture

    request.out.mkdir(parents=True, exist_ok=True)
    png = png_drawing()
    if png is None:
        note("PNG pictures need the extra record: pip install 'tui-transformer[record]'; SVG alone is written")

    def take(number: int, name: str, svg: str) -> None:
        path = request.out / file_name(number, name)
        write_picture(path, svg, png)
        note(f"wrote {path}.svg" + (" and .png" if png is not None else ""))

    if ended := record(session, told, size, request.theme, take):
        raise SystemExit(ended)
