"""Broken logs of a run: what can be read of them is drawn, and no line of them ends a screen."""

from __future__ import annotations

import math

import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.explorer.tools.runs import LONGEST_LINE, logged
from tui_transformer.explorer.tools.train.driver import CHARTS, COLUMNS, Curves
from tui_transformer.explorer.widgets.chart_drawing import chart_text

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
