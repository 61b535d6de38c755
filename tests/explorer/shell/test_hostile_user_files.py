"""Broken files of the user and of a run: what can be read of them is used, and no line of them ends a screen."""

from __future__ import annotations

import math

import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.explorer.shell.preferences import read_preferences
from tui_transformer.explorer.shell.user_files import (
    LONGEST,
    MOST,
    MOST_ASKED,
    Score,
    count_answer,
    read_score,
    recent,
    recent_path,
    remember,
    score_path,
)
from tui_transformer.explorer.tools.runs import LONGEST_LINE, logged
from tui_transformer.explorer.tools.train.driver import CHARTS, COLUMNS, Curves
from tui_transformer.explorer.widgets.chart_drawing import chart_text

PREFERENCES = b'theme = "tui-light"\n[keys]\n"step.next" = "space,j"\n"help" = "f1"\n'
PIECES = ["theme", "keys", "[[", *"='[]{}.,1\n", '"', "nan", "true", "2020-01-01", "\\u0000"]
USED = {"models": ["question", "copy"], "sentences": ["the cat", "é\u202e\n"], "vocabularies": ["english"]}
SCORE = {"right": 3, "asked": 4}


@COUNTS
def test_preferences_that_can_be_used_are_and_each_line_about_the_rest_names_the_file(tmp_path, count):
    path = tmp_path / "config.toml"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        preferences = read_preferences(path)
        assert all(isinstance(key, str) for key in preferences.keys.values())
        assert preferences.theme is None or isinstance(preferences.theme, str)
        for line in preferences.problems:
            assert path.name in line
            assert len(line.splitlines()) == 1

    text = st.lists(st.sampled_from(PIECES), max_size=20).map(lambda pieces: "".join(pieces).encode())
    hold(count, check, data=st.one_of(damaged(PREFERENCES), text, st.just(b"a = " + b"[" * 5000)))


@COUNTS
def test_what_was_used_lately_is_read_as_far_as_it_can_be_and_what_is_used_next_is_kept(count):
    path = recent_path()
    path.parent.mkdir(parents=True)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        for kind in ("models", "sentences", "surveys", "vocabularies"):
            assert len(recent(kind)) <= MOST
            assert all(isinstance(entry, str) and len(entry) <= LONGEST for entry in recent(kind))
        before = recent("models")
        remember("sentences", "a new one")
        assert recent("sentences")[0] == "a new one"
        assert recent("models") == before

    hold(min(count, 1000), check, data=st.one_of(changed(USED).map(as_json), damaged(as_json(USED))))


@COUNTS
def test_what_can_be_a_score_is_one_and_the_next_answer_is_counted(count):
    path = score_path()
    path.parent.mkdir(parents=True)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        score = read_score()
        assert 0 <= score.right <= score.asked <= MOST_ASKED
        assert str(score).endswith("predicted")
        assert count_answer(right=True) == Score(score.right + 1, score.asked + 1)
        assert read_score() in (Score(score.right + 1, score.asked + 1), Score())

    hold(count, check, data=st.one_of(changed(SCORE).map(as_json), damaged(as_json(SCORE))))


LINE = {"step": 3, "epoch": 0.5, **dict.fromkeys(COLUMNS, 1.5), "norms": {"a": 1.0}}
LOGS = {
    "log.csv": (
        ",".join(["step", *COLUMNS]) + "\n" + "".join(f"{i}{',0.5' * len(COLUMNS)}\n" for i in range(1, 6))
    ).encode(),
    "log.jsonl": b"".join(as_json(LINE | {"step": i}) + b"\n" for i in range(1, 6)),
}


@COUNTS
@pytest.mark.parametrize("name", LOGS)
def test_broken_logs_are_drawn_as_far_as_they_go(tmp_path, name, count):
    path = tmp_path / name

    def check(data: bytes) -> None:
        path.write_bytes(data)
        for row in logged(tmp_path):
            assert row["step"] == int(row["step"]) >= 0
        curves = Curves()
        curves.read(tmp_path, 10**9)
        for kind in CHARTS:
            chart = curves.chart(kind)
            assert all(math.isfinite(value) for series in chart.series for value in series.y)
            chart_text(chart)

    lines: st.SearchStrategy[bytes] = damaged(LOGS[name])
    if name == "log.jsonl":
        lines = st.one_of(lines, st.lists(changed(LINE).map(as_json), max_size=4).map(b"\n".join))
    hold(count, check, data=lines)


@pytest.mark.parametrize("step", ["NaN", "Infinity", "-Infinity", "1e300", "-1", "0.5", '"x"', "null"])
def test_a_line_without_a_step_is_left_out(tmp_path, step):
    (tmp_path / "log.jsonl").write_text(f'{{"step": {step}, "loss": 1}}\n{{"step": 2, "loss": 3}}\n')
    assert [row["step"] for row in logged(tmp_path)] == [2.0]


def test_the_largest_numbers_have_a_mean(tmp_path):
    (tmp_path / "log.jsonl").write_text("".join(f'{{"step": {i}, "loss": 1.5e308}}\n' for i in range(1, 400)))
    curves = Curves()
    curves.read(tmp_path, 1000)
    assert set(curves.of["loss"].points[1]) == {1.5e308}


@pytest.mark.parametrize("name", LOGS)
def test_of_a_line_without_end_only_a_part_is_in_memory(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.write(LOGS[name] + b'{"step": 6, "loss": ')
        file.truncate(3 << 30)
    rows = read_or_refused(lambda: [row["step"] for _, row in zip(range(5), logged(tmp_path), strict=False)])
    assert rows == [1, 2, 3, 4, 5]
    assert LONGEST_LINE < 1 << 20
