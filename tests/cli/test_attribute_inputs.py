"""`attribute --by` and gradients of metrics in `show`: the numbers of the analysis, and what they sum to."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import Run
from reference import REFERENCES

from tui_transformer.analysis.input_attribution import gradient_times_input, gradients_of, integrated_gradients
from tui_transformer.analysis.metrics import Metric
from tui_transformer.model import Model

GIVEN = ("--model", "copy", "--ids", "5,6,7,8,5", "--tokens", "11,12")
METRIC, LAST = Metric("difference", (11, 12)), range(4, 5)


def test_a_line_a_token_is_that_of_the_analysis(run: Run) -> None:
    trace = Model.load("copy").trace(ids=[5, 6, 7, 8, 5])
    rows = json.loads(run("attribute", *GIVEN, "--by", "gradient", "--format", "json").out)
    np.testing.assert_allclose(
        [row["gradient × input"] for row in rows], gradient_times_input(trace, METRIC, LAST).rows, atol=1e-5
    )
    rows = json.loads(run("attribute", *GIVEN, "--by", "integrated", "--points", "8", "--format", "json").out)
    integrated = integrated_gradients(trace, METRIC, LAST, points=8)
    np.testing.assert_allclose([row["integrated gradient"] for row in rows], integrated.rows, atol=1e-4)


def test_text_says_what_they_sum_to_and_what_is_left(run: Run) -> None:
    model = Model.load("copy")
    trace = model.trace(ids=[5, 6, 7, 8, 5])
    mean = trace["embedding.output"].astype(np.float64).mean(axis=0)
    integrated = integrated_gradients(trace, METRIC, LAST, baseline=mean)
    out = run("attribute", *GIVEN, "--by", "integrated", "--baseline", "mean", "--top", "2").out
    assert len(out.splitlines()) == 5
    assert f"of the baseline {integrated.baseline:.4f}" in out
    assert "remainder " in out
    word = run("attribute", *GIVEN, "--by", "integrated", "--baseline", "9", "--points", "4").out
    rows = model.trace(ids=[9] * 5)["embedding.output"].astype(np.float64)
    assert f"of the baseline {integrated_gradients(trace, METRIC, LAST, baseline=rows, points=4).baseline:.4f}" in word


def test_the_gradient_of_a_metric_is_shown_and_explained(run: Run) -> None:
    computed = gradients_of(Model.load("copy").trace(ids=[5, 6, 7, 8, 5]), METRIC, LAST)
    ended = run("show", "0.self_attention.weights", *GIVEN, "--gradient", "--head", "1", "--format", "json")
    shown = json.loads(ended.out)
    np.testing.assert_allclose(shown["values"], computed.values["decoder.0.self_attention.weights"][1], atol=1e-6)
    assert f"{computed.loss:.5g}"[:5] in ended.err
    explained = json.loads(
        run("show", "output.logits", *GIVEN, "--gradient", "--explain", "4,12", "--format", "json").out
    )
    assert explained["recomputed"] == -1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("attribute", *GIVEN, "--metric", "loss"), 2, "are of --by gradient"),
        (("attribute", *GIVEN, "--by", "gradient", "--neurons"), 2, "--neurons are terms"),
        (("attribute", *GIVEN, "--by", "gradient", "--of", "0.self_attention.weights"), 1, "is no input"),
        (("attribute", "--by", "gradient", "--model", "attention"), 1, "no logits of words"),
        (("show", "0.output", *GIVEN), 2, "give --gradient too"),
        (("show", "0.output", "--gradient", "--model", "copy"), 2, "or --tokens or --metric"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, arguments: tuple[str, ...], code: int, says: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err


def test_the_remainder_of_experts_is_said_to_hold_their_jumps(run: Run) -> None:
    ids = ("--model", str(REFERENCES / "mixtral"), "--ids", "5,9,7", "--tokens", "8", "--by", "integrated")
    assert "· with the jumps where a token goes to another expert" in run("attribute", *ids, "--points", "2").out
    gpt2 = ("--model", str(REFERENCES / "gpt2"), *ids[2:])
    assert "another expert" not in run("attribute", *gpt2, "--points", "2").out
