"""`patch --each`: the same numbers as the analysis, in every format."""

from __future__ import annotations

import json

import pytest
from command_line import Run

from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.model import Model

GIVEN = ("patch", "--model", "copy", "--ids", "5,6,7,8,9", "--from-ids", "5,10,7,8,9")


@pytest.mark.parametrize("kind", ["position", "head", "layer"])
def test_the_table_is_that_of_the_analysis(run: Run, kind: str) -> None:
    model = Model.load("copy")
    trace, other = model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])
    measured = list(sweep(trace, other, table_of(trace.program, kind), Metric("difference", (11, 12)), range(4, 5)))
    rows = json.loads(run(*GIVEN, "--each", kind, "--tokens", "11,12", "--format", "json").out)
    assert [row["difference"] for row in rows] == [each.value for each in measured]
    assert [row["step"] for row in rows] == [each.place.step for each in measured]


def test_text_says_what_is_measured_and_of_what(run: Run) -> None:
    out = run(*GIVEN, "--each", "layer").out
    assert "KL divergence at position 4" in out
    assert "0 as it is" in out


def test_svg_is_a_heat_map(run: Run) -> None:
    out = run(*GIVEN, "--each", "position", "--format", "svg").out
    assert out.startswith("<svg")
    assert out.count("<rect") > 15


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--each", "head", "--head", "1"), 2, "--each names the places itself"),
        (("weights", "--each", "head"), 2, "leave out STEP"),
        ((), 2, "name a step, or a table with --each"),
        (("0.self_attention.weights", "--format", "svg"), 2, "svg is a format of --each"),
        (("--each", "head", "--tokens", "1,2,3"), 2, "give a token, or two"),
        (("--each", "head", "--metric", "difference"), 2, "about 2 tokens, not 0"),
        (("--each", "layer", "--tokens", "nothing"), 1, "is no word of the vocabulary"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run: Run, more: tuple[str, ...], code: int, says: str) -> None:
    ended = run(*GIVEN, *more)
    assert ended.code == code, ended.err
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
