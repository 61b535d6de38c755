"""`record`: a tour, or what keys do, as pictures, a film for a terminal, a moving picture or a page."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from tui_transformer.cli.commands.record import Request
from tui_transformer.cli.output import note
from tui_transformer.cli.terminal import check_theme, parse_terminal_size
from tui_transformer.errors import UsageError
from tui_transformer.session.open_session import session_of
from tui_transformer.session.tour_stop import suitable


def run(request: Request) -> None:
    """Record what is asked for.

    Raises:
        InputError: The tour does not suit the model, a key is none, or a file cannot be written.
    """
    size = parse_terminal_size(request.size)
    if request.theme is not None:
        check_theme(request.theme)
    if (request.tour is None) is (request.keys is None):
        raise UsageError('name a tour, or keys that are pressed: --keys "space space enter"')
    options = request.options()
    session = session_of(options.load(), request.reading(), options)
    os.environ.setdefault("COLORTERM", "truecolor")
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    from tui_transformer.explorer.recorded import Page, form_of
    from tui_transformer.explorer.recording import parse_keys, record_keys, record_tour

    if request.tour is not None:
        told = suitable(session, request.tour)
        lead: Callable[..., int] = partial(record_tour, session, told)
        title = told.question or request.tour
    else:
        lead, title = (
            partial(record_keys, session, parse_keys(request.keys or "")),
            f"{session.model.name}: {request.keys}",
        )
    form = form_of(request.out, title, note)
    themes = (request.theme,) if request.theme is not None or not isinstance(form, Page) else ("dark", "light")
    for theme in themes:
        if isinstance(form, Page):
            form.theme = theme or "dark"
        if ended := lead(size, theme, form.add):
            raise SystemExit(ended)
    form.finish()
    if request.out.is_file():
        note(f"wrote {request.out}")
