"""Lectures: read with care, written stop by stop."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_transformer.errors import InputError
from tui_transformer.guide import lecture as module
from tui_transformer.guide.lecture import lecture, read_lecture, with_stop
from tui_transformer.guide.texts import Stop, tour

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


def test_all_fields_of_a_stop_can_be_written():
    assert {field.name for field in fields(Stop)} == {"name", *module._FIELDS}


def test_a_name_gives_a_tour_of_the_program():
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
    with pytest.raises(InputError, match=says) as error:
        read_lecture(path)
    assert "lecture.toml" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["nothing", "nothing.toml", "."])
def test_what_is_not_there_is_said(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        lecture(name)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "lecture.toml"
    path.write_bytes(b"\xff\xfe[a]\x00")
    with pytest.raises(InputError, match=r"lecture\.toml"):
        read_lecture(path)


def test_stops_are_appended_and_read_again(tmp_path):
    path = tmp_path / "new.toml"
    stop = Stop("Attention weights", "Softmax", 'It "sums"\\ to 1: \x7f é 😀', "a.b", 2, 0, 8, "the map", notes="n")
    assert with_stop(path, stop, "Why?") == 1
    assert with_stop(path, stop) == 2
    told = read_lecture(path)
    assert told.question == "Why?"
    assert [each.name for each in told.stops] == ["attention-weights", "attention-weights-2"]
    assert [getattr(told.stops[1], name) for name in module.ORDER] == [getattr(stop, name) for name in module.ORDER]


def test_what_was_in_the_file_stays_as_it_was_written(tmp_path):
    path = written(tmp_path, f"# mine\n[a]\n{GOOD}")
    with_stop(path, Stop("b", "B", "b", "b"))
    assert path.read_text().startswith(f"# mine\n[a]\n{GOOD}")
    assert len(read_lecture(path).stops) == 2


def test_a_file_that_is_no_lecture_is_not_written_to(tmp_path):
    path = written(tmp_path, "[a\n")
    with pytest.raises(InputError):
        with_stop(path, Stop("b", "B", "b", "b"))
    assert path.read_text() == "[a\n"
    with pytest.raises(InputError, match=r"end in \.toml"):
        with_stop(tmp_path / "lecture.txt", Stop("b", "B", "b", "b"))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_comes_back(tmp_path_factory, title, sentence):
    path = tmp_path_factory.mktemp("lecture") / "any.toml"
    title, sentence = (text.encode("utf-8", "replace").decode() for text in (title, sentence))
    if " ".join(title.split()):
        with_stop(path, Stop("x", " ".join(title.split()), "t", "s", sentence=sentence or None))
        stop = read_lecture(path).stops[0]
        assert (stop.title, stop.sentence) == (" ".join(title.split()), sentence or None)
