"""Start the explorer from the command line's options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui_transformer.engine.program import Program
from tui_transformer.explorer.state.dumped import of_dump
from tui_transformer.explorer.state.opened import open_session
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.tour_stop import suitable
from tui_transformer.explorer.tools.opening import open_survey
from tui_transformer.model.options import ModelOptions
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.survey.results import Results

__all__ = ["open_session", "run"]


def run(
    options: ModelOptions,
    text: str | None = None,
    ids: tuple[int, ...] | None = None,
    theme: str | None = None,
    *,
    pair: str | None = None,
    mask: tuple[int, ...] | None = None,
    decoder_text: str | None = None,
    decoder_ids: tuple[int, ...] | None = None,
    dump: str | None = None,
    plain: bool = False,
    tour: str | None = None,
    stop: Callable[[Program], str | None] = lambda _: None,
    batch: Sequence[str | tuple[int, ...]] = (),
    item: int = 0,
    survey: Results | None = None,
) -> int:
    """Explore a model until the user leaves; with a dump beside it, from the first cell of that which is wrong.

    Without a screen (`plain`), what is typed is answered in sentences.

    Args:
        options: The model.
        text: The sentence; a sample where neither it nor IDs are given.
        ids: Its token IDs.
        theme: Of the colours, in place of the user's.
        pair: A second sentence.
        mask: 1 for every token of the sentence that is read and 0 for padding.
        decoder_text: What the decoder has written.
        decoder_ids: The same, as token IDs.
        dump: The path of a dump.
        plain: Without a screen.
        tour: The tour to begin with: a name, or the path of a lecture.
        stop: The step to begin at; None for the first, or that of the dump.
        batch: Several sentences instead, or the token IDs of several.
        item: Which of them is shown.
        survey: The results of a survey, which are shown first.

    Returns:
        The exit code.

    Raises:
        InputError: The model or the sentence cannot be used; nothing was shown.
    """
    session = open_session(options, text, ids, pair=pair, mask=mask, decoder_text=decoder_text, decoder_ids=decoder_ids)
    if batch:
        session = session.with_batch(tuple(batch), item)
    first, says = stop(session.trace.program), visible(session.model.unread_said or "")
    at = None if first is None else Position(first)
    if dump is not None:
        dumped = of_dump(session, dump)
        session, at, says = session.with_overlay(dumped.overlay), dumped.at, visible(dumped.says)
    told = None if tour is None else suitable(session, tour)
    if plain:
        from tui_transformer.explorer.plain.run import run_plain

        if says:
            print(f"{says}.")  # noqa: T201 - the first sentence of what is told
        return run_plain(session, at, told)
    in_browser = "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")
    for name in () if in_browser else ("COLUMNS", "LINES"):  # a browser says its size so
        os.environ.pop(name, None)  # where a shell exports them, Textual would not follow a resize
    os.environ.setdefault("TEXTUAL_FPS", "250")  # a key waits for the next frame: at 60 a second up to 17 ms
    from tui_transformer.explorer.app import ExplorerApp
    from tui_transformer.explorer.shell.preferences import preferences_path, read_preferences

    preferences = read_preferences(preferences_path())
    opens = None if survey is None else partial(open_survey, survey)
    app = ExplorerApp(session, replace(preferences, theme=theme or preferences.theme), at, says, told, opens)
    app.run()
    if app.failure is not None:
        print(f"tui-transformer: {app.failure}", file=sys.stderr)  # noqa: T201 - the terminal is restored by now
        return 1
    return app.return_code or 0
