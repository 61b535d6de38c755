"""The line for the shell writes the text that is shown, whatever was put around the prompt or edited."""

from __future__ import annotations

import shlex

import pytest
from driving import NARROW, exploring

from tui_transformer.cli.main import app
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.generation.text import token_texts
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.session.session import Session

TEXT = "the fox"
BATCH = (TEXT, "the fox found a crow")
HEAD = Target("head", "decoder.1.self_attention", 1)


def averaged() -> Session:
    session = open_session(ModelOptions("story"), TEXT)
    return session.with_edits(*HEAD.edits(session.trace.program, mean=True))


SESSIONS = {
    "brackets": lambda: open_session(ModelOptions("story", framing=Framing(bracket=True)), TEXT),
    "batch": lambda: open_session(ModelOptions("story"), TEXT, batch=BATCH),
    "an edit that is left out": averaged,
}


@pytest.mark.parametrize("name", SESSIONS)
async def test_the_line_writes_what_is_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with exploring(NARROW, session=SESSIONS[name]()) as explorer:
        for key in ("W", "space", "space", "space", "y"):
            await explorer.press(key)
        screen, line = explorer.app.screen, explorer.messages[-1]
        assert isinstance(screen, GenerateScreen)
        draft = screen.writing.draft
        written = "".join(token_texts(draft.writer.model, draft.ids)[-3:])
    app(shlex.split(line.removeprefix("copied: "))[1:], standalone_mode=False)
    assert capsys.readouterr().out.strip() == written.strip()
