"""The line for the shell writes the text that is shown, whatever was put around the prompt or edited."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import NARROW, exploring
from reference import REFERENCES

from tui_transformer import Model
from tui_transformer.cli.main import app
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.generation.text import token_texts
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.edit_format import changes
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


def with_an_end(place: Path) -> Session:
    """A model whose tokenizer puts an end behind every text."""
    shutil.copytree(REFERENCES / "gpt2", place)
    raw = json.loads((place / "tokenizer.json").read_text())
    end = raw["added_tokens"][0]
    text, behind = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end["content"], "type_id": 0}}
    raw["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [text, behind],
        "pair": [text, behind, {"Sequence": {"id": "B", "type_id": 1}}, behind],
        "special_tokens": {
            end["content"]: {**end, "id": end["content"], "ids": [end["id"]], "tokens": [end["content"]]}
        },
    }
    (place / "tokenizer.json").write_text(json.dumps(raw))
    return open_session(ModelOptions(str(place)), TEXT)


def starting(place: Path) -> Session:
    """An encoder–decoder whose folder has another start token for writing, and a last token that is forced."""
    shutil.copytree(REFERENCES / "bart", place)
    (place / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 7, "forced_eos_token_id": 2}))
    return open_session(ModelOptions(str(place)), ids=(5, 6, 7, 8))


def drawing(place: Path) -> Session:
    """A model that is meant to draw from a few tokens."""
    Model.load("story").save(place)
    (place / "generation_config.json").write_text(json.dumps({"do_sample": True, "top_k": 2, "temperature": 5.0}))
    return open_session(ModelOptions(str(place)), TEXT)


FOLDERS: dict[str, Callable[[Path], Session]] = {
    "an end behind the text": with_an_end,
    "a pair": lambda place: replace(with_an_end(place), pair="a crow"),
    "another start and a forced end": starting,
    "all tokens instead of a few": drawing,
}


@pytest.mark.parametrize("name", FOLDERS)
async def test_the_line_writes_what_is_shown_of_a_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with exploring(NARROW, session=FOLDERS[name](tmp_path / "model")) as explorer:
        await explorer.press("W", "comma")
        if FOLDERS[name] is drawing:
            explorer.app.screen.query_one("#top_k").focus()
            await explorer.handled()
            await explorer.write("0")
        await explorer.press("enter")
        for key in ("space", "space", "space", "y"):
            await explorer.press(key)
        screen, line = explorer.app.screen, explorer.messages[-1]
        assert isinstance(screen, GenerateScreen)
        state = screen.writing.draft.state
    app([*shlex.split(line.removeprefix("copied: "))[1:], "--format", "json"], standalone_mode=False)
    first = [json.loads(each) for each in capsys.readouterr().out.splitlines()[:3]]
    assert [each["id"] for each in first] == list(state.written)
    assert first[0]["position"] == state.prompt


async def test_edits_of_rows_are_in_the_line_of_another_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    session = open_session(ModelOptions("story"), "Once there was a child called Tess")
    edits = changes(session.model, session.base.program, ["1.output[1] = 0", "0.output[:, 3] = 0"])
    async with exploring(NARROW, session=session.with_edits(*edits)) as explorer:
        await explorer.press("W")
        await explorer.prompt("slash", "One day")
        for key in ("space", "space", "space", "y"):
            await explorer.press(key)
        line, written = explorer.messages[-1], explorer.app.screen.writing.draft.state.written
    for edit in ("decoder.1.feed_forward.residual[1, :] = 0.0", "decoder.0.feed_forward.residual[:, 3] = 0.0"):
        assert f"--edit '{edit}'" in line
    app([*shlex.split(line.removeprefix("copied: "))[1:], "--format", "json"], standalone_mode=False)
    assert [json.loads(each)["id"] for each in capsys.readouterr().out.splitlines()] == list(written)
