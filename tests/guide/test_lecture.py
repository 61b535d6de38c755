"""Lectures: read, written, and broken."""

from __future__ import annotations

import shutil
from dataclasses import fields

import pytest
from hostile import COUNTS, damaged, hold, hold_file, read_or_refused
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from tui_transformer import trained
from tui_transformer.errors import InputError
from tui_transformer.guide import lecture as module
from tui_transformer.guide import texts
from tui_transformer.guide.lecture import lecture, read_lecture, with_stop
from tui_transformer.guide.texts import Stop, tour

# Lectures: read with care, written stop by stop
GOOD = 'title = "Softmax"\ntext = "Every row sums to 1."\nstep = "*.weights"\n'


def written(tmp_path, text: str):
    path = tmp_path / "lecture.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_has_the_format_of_the_tours(tmp_path):
    path = written(
        tmp_path, f'[about]\nquestion = "Why?"\n[first]\n{GOOD}head = 2\nnotes = "Ask first."\n[next]\n{GOOD}'
    )
    told = read_lecture(path)
    assert told.question == "Why?"
    assert [stop.name for stop in told.stops] == ["first", "next"]
    assert told.stops[0] == Stop("first", "Softmax", "Every row sums to 1.", "*.weights", head=2, notes="Ask first.")
    assert {field.name for field in fields(Stop)} == {"name", *module.FIELDS}
    # as editors of Windows write it
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_lecture(path) == told
    # a name gives a tour of the program
    told = lecture("question")
    assert told.stops == tour("question")
    assert told.path is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no stop"),
        ('[about]\nquestion = "Why?"\n', "there is no stop"),
        ("[about]\nquestion = 3\n[a]\n" + GOOD, r"\[about\] question is not a text"),
        ("about = 3\n[a]\n" + GOOD, r"\[about\] question is not a text"),
        ("a = 3\n", r"\[a\] is not a section"),
        ('[a]\ntext = "x"\nstep = "y"\n', r"\[a\] has no title"),
        (f"[a]\n{GOOD}colour = 3\n", r"\[a\] 'colour' is not a field of a stop: use title, text"),
        (f"[a]\n{GOOD}head = -1\n", r"\[a\] head is not a whole number from 0"),
        (f"[a]\n{GOOD}head = true\n", r"\[a\] head is not a whole number from 0"),
        (f'[a]\n{GOOD}row = "1"\n', r"\[a\] row is not a whole number from 0"),
        (f"[a]\n{GOOD}row = 1e300\n", r"\[a\] row is not a whole number"),
        (f"[a]\n{GOOD}column = 99999999999999999999\n", r"\[a\] column is not a whole number"),
        (f'[a]\n{GOOD}ablate = "head:x:1"\n', r"\[a\] ablate is not a list"),
        (f'[a]\n{GOOD}change = ["x"]\n', r"\[a\] change is not what and by what"),
        (f'[a]\n{GOOD}action = "delete"\n', r"\[a\] action is not explain"),
        ('[a]\ntitle = " "\ntext = "x"\nstep = "y"\n', r"\[a\] title is not a text"),
        ("[a]\ntitle = 3\ntext = 3\nstep = 3\n", r"\[a\] title is not a text"),
        ("[a\n", "lecture.toml"),
        ('a = """' + "x" * (1 << 21) + '"""', "lecture.toml"),
        ("".join(f"[s{i}]\n{GOOD}" for i in range(501)), "501 stops are too many"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_file_section_and_field(text, says, tmp_path):
    path = written(tmp_path, text)
    assert "lecture.toml" in refuses(says, lambda: read_lecture(path))


def test_what_is_not_there_or_no_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("nothing", "nothing.toml", "."):
        with pytest.raises(InputError):
            lecture(name)
    # bytes that are no text
    path = tmp_path / "lecture.toml"
    path.write_bytes(b"\xff\xfe[a]\x00")
    refuses(r"lecture\.toml", lambda: read_lecture(path))


def test_stops_are_appended_and_what_was_in_a_file_stays_as_it_was_written(tmp_path):
    path = tmp_path / "new.toml"
    stop = Stop("Attention weights", "Softmax", 'It "sums"\\ to 1: \x7f é 😀', "a.b", 2, 0, 8, "the map", notes="n")
    assert with_stop(path, stop, "Why?") == 1
    assert with_stop(path, stop) == 2
    told = read_lecture(path)
    assert told.question == "Why?"
    assert [each.name for each in told.stops] == ["attention-weights", "attention-weights-2"]
    assert [getattr(told.stops[1], name) for name in module.ORDER] == [getattr(stop, name) for name in module.ORDER]
    # what was in a file stays
    path = written(tmp_path, f"# mine\n[a]\n{GOOD}")
    with_stop(path, Stop("b", "B", "b", "b"))
    assert path.read_text().startswith(f"# mine\n[a]\n{GOOD}")
    assert len(read_lecture(path).stops) == 2
    # no lecture is written to
    path = written(tmp_path, "[a\n")
    with pytest.raises(InputError):
        with_stop(path, Stop("b", "B", "b", "b"))
    assert path.read_text() == "[a\n"
    refuses(r"end in \.toml", lambda: with_stop(tmp_path / "lecture.txt", Stop("b", "B", "b", "b")))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_comes_back(tmp_path_factory, title, sentence):
    path = tmp_path_factory.mktemp("lecture") / "any.toml"
    title, sentence = (text.encode("utf-8", "replace").decode() for text in (title, sentence))
    if " ".join(title.split()):
        with_stop(path, Stop("x", " ".join(title.split()), "t", "s", sentence=sentence or None))
        stop = read_lecture(path).stops[0]
        assert (stop.title, stop.sentence) == (" ".join(title.split()), sentence or None)


# Broken lectures: one line that names the file, or stops that can be shown, and another stop can be written behind
WHOLE = """[about]
question = "Where does .99 come from?"

[every-stop]
sentence = "where did the old sailor hide the map ?"

[softmax]
title = "Softmax"
text = "Every row sums to 1."
step = "encoder.0.self_attention.weights"
head = 2
row = 0
column = 8
ablate = ["head:encoder.0.self_attention:2"]
change = ["map", "sea"]
action = "chart"
notes = "Ask first."
"""
VALUES = ["0", "-1", "1.5", "nan", "true", '""', '"\\u0000"', "[]", '["a"]', "[1, 2]", "{}", "2020-01-01", "9" * 30]
NEW = Stop("new", "New", 'A text\x7f with "quotes" and é.', "embedding.tokens")


@st.composite
def other_values(draw: st.DrawFn) -> bytes:
    """The file with one to three lines that have another value, or are gone."""
    lines = WHOLE.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        field, equals, _ = lines[at].partition(" = ")
        lines[at] = draw(st.sampled_from(["", *(f"{field} = {value}" for value in VALUES)])) if equals else ""
    return "\n".join(lines).encode()


@COUNTS
def test_broken_lectures(tmp_path, count):
    path = tmp_path / "lecture.toml"

    def read() -> None:
        told = read_lecture(path)
        assert all(stop.title and stop.text and stop.step for stop in told.stops)
        assert "\n" not in told.question
        assert with_stop(path, NEW) == len(told.stops) + 1
        again = read_lecture(path)
        assert again.stops[:-1] == told.stops
        assert (again.stops[-1].title, again.stops[-1].text) == (NEW.title, NEW.text)

    hold_file(min(count, 1000), path, st.one_of(other_values(), damaged(WHOLE.encode())), read)


def test_names_of_very_many_parts_and_long_lines_are_refused_at_once(tmp_path):
    path = tmp_path / "lecture.toml"
    for name in (
        "a." * 50_000 + "b = 1",
        "x = 1\n[" + '"a b" . ' * 50_000 + "c]",
        "x = {" + "a.'b'." * 9999 + "c = 1}",
    ):
        path.write_text(name)
        refuses(r"lecture\.toml: line [12] has a name of more than 32 parts", lambda: read_lecture(path))
    for fill in ('"', "'", "a", "a.", "a b. ", '"a', "-", " ."):
        path.write_text('title = "' + (fill * 1_000_000)[:1_000_000])
        assert read_or_refused(lambda: read_lecture(path), path) is None


# Broken texts of a translation and of a trained model: what cannot be read is English, or one line
@pytest.fixture
def translated(tmp_path):
    """The folder of a second language, whose files are those of English."""
    shutil.copytree(texts.ROOT / "en", tmp_path / "en")
    shutil.copytree(texts.ROOT / "en", tmp_path / "xx")
    yield tmp_path / "xx"
    forget()


def forget() -> None:
    """Texts are kept once they are read."""
    for member in vars(texts).values():
        if hasattr(member, "cache_clear"):
            member.cache_clear()


@COUNTS
@pytest.mark.parametrize("name", ["steps.toml", "tours/encoder.toml", "tours/copy.toml", "help/general.md"])
def test_broken_translations_are_english(translated, name, count):
    path = translated / name
    tour = path.stem if name.startswith("tours") else "encoder"
    wanted = [stop.step for stop in texts.tour(tour)]

    def check(data: bytes) -> None:
        forget()
        path.write_bytes(data)
        assert [stop.step for stop in texts.tour(tour, "xx", translated.parent)] == wanted
        assert all(stop.title and stop.text for stop in texts.tour(tour, "xx", translated.parent))
        assert texts.step_text("encoder.0.self_attention.scores", "xx", translated.parent).title
        assert texts.help_text("general", "xx", translated.parent).strip()

    hold(min(count, 1000), check, data=damaged(path.read_bytes()))


@COUNTS
def test_broken_facts_of_a_trained_model(tmp_path, count):
    whole = (trained.HERE / "copy" / trained.ABOUT).read_bytes()
    (tmp_path / "copy").mkdir()
    path = tmp_path / "copy" / trained.ABOUT

    def read() -> None:
        trained.about.cache_clear()
        assert isinstance(trained.about("copy", tmp_path), dict)

    hold_file(count, path, damaged(whole), read)
    trained.about.cache_clear()
