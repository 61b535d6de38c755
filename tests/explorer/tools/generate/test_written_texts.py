"""A text that was written is opened in the explorer and written by a line for the shell, and what writes it is said."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer import Model, generate
from tui_transformer.cli.main import app
from tui_transformer.engine.changes import OPEN, Set
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.plain.effects import written
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.explorer.tools.generate.steering import Start, prompt_of
from tui_transformer.explorer.widgets.generation import TokenText
from tui_transformer.generation.text import token_texts
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.edit_format import changes
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible

TEXT = "the fox"
BATCH = (TEXT, "the fox found a crow")
HEAD = Target("head", "decoder.1.self_attention", 1)


def of_shell(copied: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """What a line that was copied prints in the shell."""
    app([*shlex.split(copied.removeprefix("copied: "))[1:], *more], standalone_mode=False)
    return capsys.readouterr().out


async def set_top_k(explorer: Explorer, value: str) -> None:
    await explorer.press("comma")
    await explorer.fill("top_k", value)
    await explorer.press("enter")


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
        draft, line = explorer.screen(GenerateScreen).writing.draft, explorer.messages[-1]
        written = "".join(token_texts(draft.writer.model, draft.ids)[-3:])
    assert of_shell(line, capsys).strip() == written.strip()


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
async def test_the_line_writes_what_is_shown_of_a_folder(name: str, tmp_path, capsys) -> None:
    async with exploring(NARROW, session=FOLDERS[name](tmp_path / "model")) as explorer:
        await explorer.press("W")
        await (set_top_k(explorer, "0") if FOLDERS[name] is drawing else explorer.press("comma", "enter"))
        for key in ("space", "space", "space", "y"):
            await explorer.press(key)
        state, line = explorer.screen(GenerateScreen).writing.draft.state, explorer.messages[-1]
    first = [json.loads(each) for each in of_shell(line, capsys, "--format", "json").splitlines()[:3]]
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
    printed = of_shell(line, capsys, "--format", "json").splitlines()
    assert [json.loads(each)["id"] for each in printed] == list(written)


@pytest.mark.parametrize(
    ("model", "texts"),
    [("story", ("Once there was",)), ("story", ("A dog ran", "Once there was a big")), ("dates", ())],
)
async def test_a_text_opens_alone_as_its_words_that_can_be_edited(model: str, texts: list[str]) -> None:
    async with exploring(WIDE, model=model, text=texts[0] if texts else None) as explorer:
        if len(texts) > 1:
            await explorer.change(explorer.session.with_batch(tuple(texts)))
        explorer.parts.port.change(explorer.session.with_targets([1] * len(explorer.session.predicted)))
        await explorer.press("W", "space", "space")
        ids = explorer.app.screen.writing.draft.ids
        await explorer.press("E")
        session = explorer.session
        assert (session.predicted, session.batch, session.targets) == (ids, (), None)
        text = session.decoder_text if model == "dates" else session.text
        assert text
        assert "Ġ" not in text
        edited = session.with_decoder_text(text) if model == "dates" else session.with_text(f"{text} a")
        assert edited.predicted[: len(ids)] == ids


async def test_that_a_broken_model_writes_as_it_is_is_said() -> None:
    async with exploring(WIDE, model="story") as explorer:
        explorer.parts.port.change(explorer.session.with_breaks("no-mask"))
        await explorer.press("W")
        assert "the model writes as it is, without what is broken: mask off" in explorer.messages[-1]
        await explorer.press("space", "E")
        assert not explorer.session.breaks  # it opens as the model that wrote it
        assert explorer.session.overlay.kind == "nothing"


async def test_a_sentence_of_a_batch_is_written_on_without_what_it_is_padded_with():
    """It is written on from its last word, as it is where it stands alone."""
    batch = ("Once there was a cat", "Mira and Ben")
    session = open_session(ModelOptions("story", device="cpu"), batch[0], None).with_batch(batch, 1)
    assert session.encoding.tokens[-1].text == "[PAD]"
    start = Start.of(session)
    prompt = prompt_of(start.writer, session)
    assert prompt == session.model.encode(batch[1]).ids
    async with exploring(NARROW, session=session) as explorer:
        await explorer.press("W", "space")
        await explorer.shown("Mira and Ben ne_")
        assert "4 given · 1 written" in explorer.text
    dates = open_session(ModelOptions("dates", device="cpu"), "the 3rd of May 2021", None)
    dates = dates.with_batch(("the 3rd of May 2021", "3 May 2021"), 1)
    masked = Start.of(dates).writer.mask
    assert masked is not None
    assert masked[0] == tuple(int(each != 0) for each in dates.encoding.ids)


async def test_settings_of_a_place_stand_beside_what_was_drawn_by_them() -> None:
    async with exploring(WIDE, model="story", text="Once there was") as explorer:
        await explorer.press("W")
        for top_k, keys in (("3", ["space"] * 4), ("7", ["left"])):
            await set_top_k(explorer, top_k)
            await explorer.press(*keys)
        assert "top-k 3 cuts 509" in explorer.text
        assert " top-k 3 · " in explorer.text.splitlines()[0]
        await explorer.press("comma")
        assert explorer.app.screen.query_one("#top_k").value == "3"
        await explorer.press("enter", "right")
        assert "top-k 7 cuts 505" in explorer.text
        assert " top-k 7 · " in explorer.text.splitlines()[0]


def test_without_a_screen_as_many_tokens_are_written_as_are_asked_for() -> None:
    session = open_session(ModelOptions("story"), "Once there was")
    text = generate(session.model, session.text, max_new_tokens=60)
    assert written(session, "60") == f"written: “{visible(session.text + text)}”"


async def test_a_pad_token_that_was_written_is_read_where_the_text_is_opened() -> None:
    async with exploring(WIDE, model=str(REFERENCES / "vanilla-decoder")) as explorer:
        await explorer.press("W", "space", "space")
        state = explorer.app.screen.writing.draft.state
        assert state.ids[-1] == explorer.session.model.config.pad_id
        await explorer.press("E")
        assert explorer.session.predicted == state.ids
        np.testing.assert_allclose(explorer.session.trace["output.probabilities"][-1], state.alone, atol=1e-5)


async def test_what_was_written_after_a_stop_token_was_chosen_by_hand() -> None:
    async with exploring(WIDE, model="dates") as explorer:
        await explorer.press("W", "N")
        assert "the text ends, stop token" in explorer.text
        await explorer.press("y")
        assert "chosen otherwise" not in explorer.messages[-1]
        await explorer.press("enter")
        await explorer.press("y")
        assert "what was chosen otherwise" in explorer.messages[-1]


async def test_what_lets_tokens_see_later_ones_has_no_cache_and_says_so() -> None:
    async with exploring(WIDE, model="decoder", sizes={"layers": 2}) as explorer:
        edit = Set("0.self_attention.weights", 0.5, columns=range(1, OPEN))
        explorer.parts.port.change(explorer.session.with_edits(edit))
        await explorer.press("W", "space", "space")
        await explorer.shown("no cache: decoder.0.self_attention.weights is edited")
        assert "greedy · no cache" in explorer.text.splitlines()[0]


async def test_a_double_click_goes_to_the_token_under_it_and_not_to_what_scrolls_there():
    async with exploring((60, 24), model="story", text="Once there was a boat") as explorer:
        await explorer.open("generate")
        for _ in range(40):
            await explorer.press("space")
        text = explorer.screen(GenerateScreen).query_one("#text", TokenText)
        for _ in range(30):
            await explorer.press("left")
        last = text.size.height - 1
        token = text._lines[last][0].token
        assert token > text._cursor
        await explorer.pilot.click(text, offset=(0, last), times=2)
        await explorer.settled()
        assert text._cursor == token
