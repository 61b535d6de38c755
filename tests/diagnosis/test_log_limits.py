"""Logs of every size and kind are read in time and memory in proportion to them, or refused."""

from __future__ import annotations

import cProfile
import pstats
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from dumping import dump_of

from tui_transformer.diagnosis.dumps import Dump, open_dump
from tui_transformer.diagnosis.dumps.headings import is_named, says
from tui_transformer.diagnosis.naming.words import every_phrase, is_spoken, phrase_of
from tui_transformer.errors import InputError


@pytest.mark.parametrize(
    "heading", ["scores", "Layer {0} head {0} thing {0}", "{0}", "Q[{0}]", "foo bar {0}", "the fox"]
)
def test_a_thousand_headings_are_read_in_time_in_proportion(heading: str, tmp_path: Path) -> None:
    """The work is counted: twice the headings take about twice the calls."""

    def calls(count: int) -> int:
        text = "".join(f"{heading.format(i)}:\n1.5 2.5\n" for i in range(count))
        profile = cProfile.Profile()
        profile.runcall(dump_of, text, tmp_path)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(1000) < 2.3 * calls(500)


def test_a_long_line_is_read_in_parts_and_numbers_that_float32_does_not_hold_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.random.default_rng(0).normal(size=(3000, 16))
    text = "Q: [" + ", ".join(f"[{', '.join(f'{x:.6f}' for x in row)}]" for row in array) + "]\nK:\n1.5 2\n"
    dump = dump_of(text, tmp_path)
    np.testing.assert_allclose(dump.tensors["Q"].values.array, array, atol=1e-6)
    assert dump.tensors["K"].shape == (1, 2)
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MANY", 1)
    (array,) = (each.values.array for each in dump_of("Q:\n1 2\n3 4\n0.1 1e300\n", tmp_path).tensors.values())
    assert array.tolist() == [[1, 2], [3, 4], [0.1, 1e300]]


def traced(path: Path) -> tuple[int, Dump]:
    """The most memory that reading a dump takes, and the dump."""
    tracemalloc.start()
    dump = open_dump(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, dump


def test_reading_takes_little_more_memory_than_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.log"
    path.write_text("Q:\n" + "0.123456 -1.23456 2.34567 -0.98765\n" * 60_000)
    assert traced(path)[0] < 2.5 * path.stat().st_size
    # numbers of two letters take no more than thrice the file
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MANY", 1000)
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.PIECE", 1 << 10)
    path.write_text("Q:\n" + "1 2 3 4 5 6 7 8\n" * 20_000)
    peak, dump = traced(path)
    assert peak < 3 * path.stat().st_size
    assert (dump.tensors["Q"].values.array == np.arange(1, 9)).all()


def test_lines_of_numbers_are_read_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted: a line of a number is split, and nothing else is called for it."""
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.LOOKED_AT", 0)
    (tmp_path / "run.log").write_text("Q:\n" + "1\n" * 20_000)
    profile = cProfile.Profile()
    profile.runcall(open_dump, tmp_path / "run.log")
    assert pstats.Stats(profile).total_calls < 2.5 * 20_000  # type: ignore[attr-defined]
    assert open_dump(tmp_path / "run.log").tensors["Q"].shape == (20_000, 1)


def test_rows_without_end_or_of_any_width_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.numbers.MOST_RUNS", 50)
    dump = dump_of("Q:\n" + "1.5 2.5\n3.5\n" * 100 + "K:\n1.5\n", tmp_path)
    assert list(dump.tensors) == ["K"]
    assert dump.refused == {"Q": "rows of different lengths"}
    with pytest.raises(InputError, match="Q: rows of different lengths"):
        dump_of("Q:\n" + "[" * 5000 + "1.5 2.5" + "]" * 5000, tmp_path)


SAYING = [
    "encoderlayer0", "transformerblock-3", "L1H2", "testcase 2", "batch_item 1", "2nd layer", "decoder#1",
    "Inputsentence 4", "input: 3", "logits", "After add", "ids", "QueryKey head3",
]  # fmt: skip


def test_the_quick_look_at_a_line_passes_over_nothing_that_it_says() -> None:
    spoken = [phrase for phrase in every_phrase() if is_spoken(phrase_of(phrase))]
    assert len(spoken) > 200
    assert [phrase for phrase in spoken if not is_named(phrase)] == []
    assert [line for line in SAYING if not says(line)] == []
    assert not says("the quick brown fox")


def test_headings_that_no_log_can_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.MOST", 3)
    for numbers in ("1.5\n", "1.5\n2.5 3\n4 5 6\n"):  # those that cannot be read count too
        with pytest.raises(InputError, match=r"run\.log: more than 3 headings with numbers"):
            dump_of("".join(f"{name}:\n{numbers}" for name in "abcd"), tmp_path)
    # without numbers
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.log.MOST_IN_A_ROW", 30)
    with pytest.raises(InputError, match="more than 30 headings without numbers"):
        dump_of("".join(f"layer {i}:\n" for i in range(31)), tmp_path)
    numbers = "".join(f"layer {i}:\n" for i in range(29)) + "Q:\n0.5 1.5\n2.5 3.5\n"
    assert dump_of(numbers * 2, tmp_path).tensors
