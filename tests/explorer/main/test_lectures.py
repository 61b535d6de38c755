"""Lectures in the explorer: opened from a file, bookmarked, read again."""

import os
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, WEIGHTS, WIDE, exploring
from reference import REFERENCES

from tui_transformer.engine.changes import Add, Scale, Set
from tui_transformer.engine.edits import Ablate, Edit
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.export import stop_at
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.features.dictionary import Features
from tui_transformer.guide.lecture import read_lecture, with_notes, with_stop
from tui_transformer.guide.texts import Stop, matching
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.edit_format import kept
from tui_transformer.session.position import Position
from tui_transformer.session.tour_stop import base_of, doing, scenery, suitable
from tui_transformer.views.step_view import Place

QUESTION = open_session(ModelOptions("question"), None, None)


@pytest.fixture
def path(here: Path) -> Path:
    """The file of a lecture."""
    return here / "mine.toml"


def written(name: str, step: str = "tokens", more: str = "") -> str:
    """A stop of a lecture."""
    return f'[{name}]\ntitle = "A"\ntext = "a"\nstep = "{step}"\n{more}\n'


async def test_a_place_is_bookmarked_and_the_lecture_leads_back_to_it(path):
    async with exploring(WIDE, model="question") as explorer:
        await explorer.go(WEIGHTS, 2, 0, 8)
        await explorer.prompt("ctrl+b", "mine.toml")
        await explorer.answer("Ask first.")
        assert explorer.messages == ["stop 1 of mine.toml: Attention weights"]
        await explorer.go("output.logits", 0, 0, 3)
        await explorer.press("ctrl+b", "enter", "enter")
        told = suitable(explorer.session, "mine.toml")
        assert [stop.notes for stop in told.stops] == ["Ask first.", ""]
        places = [scenery(explorer.session, stop, lambda _: None).position for stop in told.stops]
        assert places == [Position(WEIGHTS, Place(2, 0, 8)), Position("output.logits", Place(0, 0, 3))]
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.go("tokens")
            await explorer.tour(told)
            await explorer.shown("Stop 1 of 2 · Attention weights")
            assert explorer.position == places[0]
            assert "Ask first." not in explorer.text
            await explorer.press("space")
            assert explorer.position == places[1]
            await explorer.press("escape")
            assert explorer.stop == "tokens"


async def test_a_bookmark_of_token_ids_keeps_the_text_that_is_read_as_them_or_says_that_there_is_none(path):
    left_out = "; the token IDs left out: no text is read as them"
    for ids, said in (((433, 299, 351, 429), ""), ((48, 76), left_out)):
        async with exploring(WIDE, model="story", ids=ids, at="output.logits") as explorer:
            await explorer.prompt("ctrl+b", str(path))
            await explorer.press("enter")
            assert explorer.messages[-1].endswith(f"mine.toml: Logits{said}")
    assert [stop.sentence for stop in read_lecture(path).stops] == ["Mira and Ben", None]


BERT, DATES = (ModelOptions(name, device="cpu") for name in (str(REFERENCES / "bert"), "dates"))
LEFT_OUT = {
    "the second sentence left out": lambda: open_session(BERT, "The waves", None, pair="a shore"),
    "the mask left out": lambda: open_session(DATES, "5 may", None).with_batch(("5 may", "12 april")),
    "the decoder's token IDs left out": lambda: open_session(DATES, "5 may", None, decoder_ids=(2, 6)),
}


@pytest.mark.parametrize("said", LEFT_OUT)
async def test_a_bookmark_says_what_of_the_input_it_does_not_keep(said, path):
    async with exploring(WIDE, session=LEFT_OUT[said](), at="tokens") as explorer:
        await explorer.prompt("ctrl+b", str(path))
        await explorer.press("enter")
        assert f"; {said}" in explorer.messages[-1]


@pytest.mark.parametrize("said", [*LEFT_OUT][:2])
async def test_a_place_that_a_lecture_cannot_lead_to_is_not_bookmarked(said, path):
    async with exploring(WIDE, session=LEFT_OUT[said]()) as explorer:
        last = len(explorer.session.encoding.ids) - 1
        await explorer.go("tokens", 0, last, 0)
        await explorer.prompt("ctrl+b", str(path))
        await explorer.press("enter")
        where = f"as a lecture reads the sentence alone: the row: tokens has no row {last}: use 0 to"
        assert where in " ".join((explorer.text, *explorer.messages)).replace("\n", " ")
        assert not path.exists()


LECTURE = """
[about]
question = "Why?"
[first]
title = "One"
text = "It is one."
step = "tokens"
notes = "Ask \\u001b[2J first. The key {key:undo} takes it back."
[second]
title = "Two"
text = "It is two."
step = "embedding.tokens"
"""


async def test_notes_are_for_who_gives_the_lecture_and_follow_it_in_a_file(tmp_path, path):
    path.write_text(LECTURE)
    (tmp_path / "notes.txt").write_text("before\n")
    async with exploring(NARROW, model="question") as explorer:
        told = with_notes(suitable(explorer.session, "mine.toml"), Path("notes.txt"))
        await explorer.tour(told)
        assert "Ask" not in explorer.text
        begun = "before\nWhy?\n\nStop 1 of 2 · One\nAsk ␛[2J first. The key u takes it back.\nThen: Two\n\n"
        assert (tmp_path / "notes.txt").read_text() == begun
        await explorer.press("right")
        assert (tmp_path / "notes.txt").read_text() == f"{begun}Stop 2 of 2 · Two\nThe last stop.\n\n"
        (tmp_path / "notes.txt").unlink()
        (tmp_path / "notes.txt").mkdir()
        await explorer.press("left")
        assert "the notes end here: notes.txt: cannot be written" in explorer.messages[-1]
        await explorer.press("right")
        assert len(explorer.messages) == 1
        assert "Stop 2 of 2" in explorer.text


async def test_a_lecture_that_was_left_begins_again_as_its_file_is_now(tmp_path, path):
    path.write_text(LECTURE)
    async with exploring(NARROW, model="question") as explorer:
        await explorer.tour(with_notes(suitable(explorer.session, "mine.toml"), Path("notes.txt")))
        await explorer.press("right", "escape")
        path.write_text(LECTURE.replace("It is one.", "It is another."))
        await explorer.press("t")
        await explorer.shown("Stop 1 of 2", "It is another.")
        assert (tmp_path / "notes.txt").read_text().count("Stop 1 of 2") == 2
        path.write_text(LECTURE.replace("tokens", "nowhere"))
        await explorer.press("t", "t")
        assert "[first] step 'nowhere' is no step of question" in explorer.messages[-1]
        assert explorer.parts.tour.stop is None


def test_notes_go_into_no_lecture_and_wait_for_no_reader(tmp_path, path):
    path.write_text(LECTURE)
    with pytest.raises(InputError, match="the lecture itself"):
        with_notes(read_lecture(path), path)
    assert path.read_text() == LECTURE
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: cannot be written"):
        with_notes(read_lecture(path), tmp_path / "pipe")


def test_the_story_of_gradients_suits_every_model_with_a_loss():
    assert not QUESTION.backward
    assert [stop.name for stop in suitable(QUESTION, "gradients").stops][:2] == ["loss", "logits"]
    with pytest.raises(InputError, match="gradients: attention predicts nothing that a loss could be of"):
        suitable(open_session(ModelOptions("attention"), None, None), "gradients")


async def test_a_bookmark_goes_into_no_file_that_is_no_lecture(tmp_path, path):
    (tmp_path / "other.toml").write_text("a = 3\n")
    async with exploring(NARROW, model="question") as explorer:
        await explorer.prompt("ctrl+b", "other.toml")
        await explorer.shown("[a] is not a section")
        await explorer.answer("other.txt")
        await explorer.shown("has to end in .toml")
        assert (tmp_path / "other.toml").read_text() == "a = 3\n"
        await explorer.answer("a" * 300 + ".toml")
        await explorer.answer("")
        await explorer.until(lambda: "File name too long" in explorer.messages[-1])


@pytest.mark.parametrize(
    ("step", "more", "says"),
    [
        ("decoder.0.nothing", "", r"\[a\] step 'decoder.0.nothing' is no step of question"),
        ("tokens", 'ablate = ["head:nowhere:1"]', r"\[a\] ablate: "),
        ("tokens", 'ablate = ["nonsense"]', r"\[a\] ablate: "),
        ("tokens", 'edits = ["nonsense"]', r"\[a\] edits: 'nonsense' is no edit"),
        ("tokens", 'sentence = ""', r"\[a\] sentence: the sentence has no tokens"),
        ("tokens", 'vocabulary = "nonsense"', r"\[a\] vocabulary: "),
        (
            "tokens",
            'sentence = "who ?"\nedits = ["encoder.0.self_attention.context[0,5,0] = 1"]',
            r"\[a\] edits: encoder.0.self_attention.context has no rows 5 to 5: use 0 to 1",
        ),
        (WEIGHTS, "head = 9", r"\[a\] head: encoder.0.self_attention.weights has no head 9: use 0 to 3"),
        (WEIGHTS, 'sentence = "who ?"\nrow = 2', r"\[a\] row: .* has no row 2: use 0 to 1"),
        ("output.logits", "column = 123", r"\[a\] column: output.logits has no column 123: use 0 to 122"),
        (f"{WEIGHTS}.*|*.query.weight", "row = 32", r"\[a\] row: .*query.weight has no row 32: use 0 to 31"),
        ("tokens", 'sentence = "who ?"\nablate = ["position:2"]', r"\[a\] ablate: .* no position 2: use 0 to 1"),
        ("tokens", 'change = ["nowhere", "sea"]', r"\[a\] change: 'where did .*' has no 'nowhere'"),
        ("tokens", 'sentence = "map"\nchange = ["map", ""]', r"\[a\] change: the sentence has no tokens"),
        ("tokens", 'ablate = ["layer:encoder.0"]\nanswer = 9', r"\[a\] answer: there is no position 9: use 0 to 8"),
        ("tokens", 'breaks = ["nonsense"]', r"\[a\] breaks: 'nonsense' is none of"),
    ],
)
def test_a_lecture_of_another_model_is_refused(step, more, says, path):
    path.write_text(written("a", step, more))
    with pytest.raises(InputError, match=says):
        suitable(QUESTION, str(path))


def test_a_part_of_a_cell_that_a_step_has_not_is_passed_over(path):
    steps = dict(zip("abcde", (WEIGHTS, "tokens", "output.logits", "vocabulary", "text"), strict=True))
    path.write_text("[every-stop]\nhead = 2\nrow = 8\ncolumn = 8\n" + "".join(map(written, steps, steps.values())))
    assert [stop.name for stop in suitable(QUESTION, str(path)).stops] == [*steps]


def test_a_position_that_is_taken_out_is_said_without_a_place():
    stop = Stop("a", "A", "a", "tokens", ablate=("position:7", "head:encoder.0.self_attention:1"))
    assert doing(stop) == "position 7 → 0 and head 1 of encoder.0.self_attention → 0"


EDITED = (
    Edit(WEIGHTS, (2, 0, 8), -1.5),
    Ablate("encoder.0.self_attention.context", (range(1, 2), range(9), range(8))),
    Ablate("encoder.0.feed_forward.activation", (range(9), range(128)), mean=True),
    Add("encoder.0.output", 0.1, rows=range(2, 5)),
    Scale("encoder.0.self_attention.query.weight", 1e-7, columns=range(3, 4)),
)


def test_a_bookmark_keeps_edits_and_breaks(path):
    edited = QUESTION.with_breaks("no-scale").with_edits(*EDITED, Set("embedding.output", np.ones(32)))
    stop = stop_at(edited, Position(WEIGHTS))
    assert kept(edited).count(None) == 1
    with_stop(path, stop)
    (told,) = suitable(QUESTION, str(path)).stops
    again = scenery(QUESTION, told, lambda _: None).after
    wanted = QUESTION.with_breaks("no-scale").with_edits(*EDITED)
    assert again.breaks == ("no-scale",)
    for name in (WEIGHTS, "encoder.0.self_attention.query.weight", "output.logits"):
        assert np.array_equal(again.trace[name], wanted.trace[name]), name
    assert not np.array_equal(again.trace["output.logits"], QUESTION.trace["output.logits"])


def test_a_bookmark_of_an_unchanged_model_is_unchanged_whatever_every_stop_of_its_lecture_changes(path):
    every = 'ablate = ["layer:encoder.0"]\nedits = ["embedding.output *= 2"]\nbreaks = ["no-scale"]\nnotes = "Slowly."'
    path.write_text(f"[every-stop]\n{every}\n{written('a')}")
    with_stop(path, stop_at(QUESTION, Position(WEIGHTS)))
    of_file, bookmarked = suitable(QUESTION, str(path)).stops
    assert scenery(QUESTION, of_file, lambda _: None).after.edits
    assert scenery(QUESTION, bookmarked, lambda _: None).after is QUESTION
    assert bookmarked.notes == "Slowly."


@pytest.mark.parametrize("model", ["question", "dates", "story"])
def test_every_stop_of_a_model_can_be_bookmarked(model, path):
    session = open_session(ModelOptions(model), None, None)
    stops = session.forward_stops[:40]
    for stop in stops:
        with_stop(path, stop_at(session, Position(stop)))
    told = suitable(session, str(path))
    assert [stop.step for stop in read_lecture(path).stops] == list(stops)
    assert [scenery(session, stop, lambda _: None).position.stop for stop in told.stops] == list(stops)


def _of_features():
    session = open_session(ModelOptions("story"), None, None)
    return session, session.with_model(session.model.with_features(Features.of(session.model)), is_the_same=True)


@pytest.mark.parametrize(
    ("sessions", "stop"),
    [
        (lambda: (QUESTION, QUESTION.with_breaks("no-residual")), "encoder.0.self_attention.residual_stream"),
        (lambda: (QUESTION, QUESTION.with_breaks("norm-place")), "encoder.0.feed_forward.residual_before_norm"),
        (_of_features, "decoder.1.output.features"),
    ],
)
def test_a_bookmark_of_a_step_that_only_a_changed_model_has_leads_back_to_it(sessions, stop, path):
    usual, changed = sessions()
    assert stop in changed.stops
    assert stop not in usual.stops
    changed = changed.with_edits(Scale(stop, 2.0))
    with_stop(path, stop_at(changed, Position(stop)))
    told = suitable(usual, str(path))
    shown = scenery(base_of(usual, told), told.stops[0], lambda _: None)
    assert shown.position.stop == stop
    assert np.array_equal(shown.after.trace[stop], changed.trace[stop])


async def test_the_loss_is_no_place_of_a_lecture_and_gradients_and_begin_words_are_said_to_be_left_out(path):
    async with exploring(WIDE, model="question", preferences=Preferences()) as explorer:
        await explorer.press("b", "b")
        assert explorer.stop == "loss"
        await explorer.press("m", "b")
        assert explorer.messages[-1] == "a lecture leads forward, where no loss is: go to a step to bookmark it"
        await explorer.press("space", "m", "b")
        await explorer.answer(str(path))
        await explorer.answer("")
        assert explorer.messages[-1].endswith("; the gradients left out: a lecture leads forward")
        assert [stop.step for stop in suitable(QUESTION, str(path)).stops] == ["output.logits"]
    async with exploring(WIDE, model="question", framing=Framing(bracket=True)) as explorer:
        await explorer.prompt("ctrl+b", str(path))
        await explorer.answer("")
        assert "; the begin and end words left out" in explorer.messages[-1]


def test_a_lecture_that_is_full_takes_no_bookmark_and_stays_as_it_was(tmp_path, path):
    stop = Stop("a", "A", "a", "tokens")
    path.write_text("".join(written(f"a-{i}") for i in range(500)))
    before = path.read_bytes()
    with pytest.raises(InputError, match="the lecture is full, with 500 stops: begin another file"):
        with_stop(path, stop)
    with pytest.raises(InputError, match="no lecture holds a sentence as long as this one: 20,000 characters"):
        with_stop(tmp_path / "new.toml", replace(stop, sentence="a" * 20_001))
    assert path.read_bytes() == before
    assert not (tmp_path / "new.toml").exists()


def test_of_several_steps_the_first_that_the_model_has_is_meant():
    names = ("decoder.0.feed_forward.hidden", "decoder.1.feed_forward.hidden", "output.logits")
    assert matching(names, "*.feed_forward.gate|*.feed_forward.hidden") == list(names[:2])
    assert matching(names, "output.logits") == ["output.logits"]
    assert matching(names, "*.gate|nothing") == []
