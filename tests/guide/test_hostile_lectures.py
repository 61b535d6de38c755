"""Broken lectures: one line that names the file, or stops that can be shown, and another stop can be written behind."""

from __future__ import annotations

import pytest
from hostile import COUNTS, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.errors import InputError
from tui_transformer.guide.lecture import read_lecture, with_stop
from tui_transformer.guide.texts import Stop

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

    def check(data: bytes) -> None:
        path.write_bytes(data)
        told = read_or_refused(lambda: read_lecture(path), path)
        if told is None:
            return
        assert all(stop.title and stop.text and stop.step for stop in told.stops)
        assert "\n" not in told.question
        assert with_stop(path, NEW) == len(told.stops) + 1
        again = read_lecture(path)
        assert again.stops[:-1] == told.stops
        assert (again.stops[-1].title, again.stops[-1].text) == (NEW.title, NEW.text)

    hold(min(count, 1000), check, data=st.one_of(other_values(), damaged(WHOLE.encode())))


@pytest.mark.parametrize(
    "name", ["a." * 50_000 + "b = 1", "x = 1\n[" + '"a b" . ' * 50_000 + "c]", "x = {" + "a.'b'." * 9999 + "c = 1}"]
)
def test_a_name_of_very_many_parts_is_refused_before_it_is_read(tmp_path, name):
    path = tmp_path / "lecture.toml"
    path.write_text(name)
    with pytest.raises(InputError, match=r"lecture\.toml: line [12] has a name of more than 32 parts"):
        read_lecture(path)


@pytest.mark.parametrize("fill", ['"', "'", "a", "a.", "a b. ", '"a', "-", " ."])
def test_no_line_takes_long_to_be_looked_at(tmp_path, fill):
    path = tmp_path / "lecture.toml"
    path.write_text('title = "' + (fill * 1_000_000)[:1_000_000])
    assert read_or_refused(lambda: read_lecture(path), path) is None
