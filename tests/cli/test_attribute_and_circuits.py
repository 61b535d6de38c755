"""`attribute` and `circuits`: the numbers of the analysis, in every format."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from command_line import Run
from reference import REFERENCES

from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.circuits import circuits, compositions, words_of
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.analysis.input_attribution import gradient_times_input, gradients_of, integrated_gradients
from tui_transformer.analysis.metrics import Metric
from tui_transformer.model import Model

IDS = "5,6,7,8,9"
STORY = ("--model", "story", "--ids", IDS)


def test_terms_are_those_of_the_analysis_and_sum_to_the_logit(run: Run) -> None:
    rows = json.loads(run("attribute", *STORY, "--tokens", "11,12", "--format", "json").out)
    attribution = attribute(Model.load("story").trace(ids=[5, 6, 7, 8, 9]), 11, 12, position=4)
    assert [row["value"] for row in rows] == [term.value for term in attribution.terms]
    assert {row["kind"] for row in rows} == {"embedding", "head", "layer", "bias"}
    assert abs(sum(row["value"] for row in rows) - attribution.logit) < 1e-4


def test_words_are_found_with_and_without_their_space(run: Run) -> None:
    out = run("attribute", *STORY, "--tokens", "Mira,the", "--top", "3").out
    assert "logit of ␣Mira less that of ␣the at position 4" in out
    assert len(out.splitlines()) == 6
    assert "remainder" in out


def test_the_most_likely_word_is_meant_where_none_is_named(run: Run) -> None:
    assert "logit of question at position 0" in run("attribute", "--model", "question").out


def test_neurons_come_one_by_one(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("attribute", *STORY, "--neurons", "--format", "csv").out)))
    assert sum(row["kind"] == "neuron" for row in rows) == 960


def test_circuits_are_those_of_the_analysis(run: Run) -> None:
    rows = json.loads(run("circuits", "--model", "copy", "--sort", "copying", "--format", "json").out)
    trace = Model.load("copy").trace(ids=[4])
    words = words_of(trace)
    scores = sorted((words.copying(each) for each in circuits(trace)), reverse=True)
    assert [row["copying"] for row in rows] == scores
    assert rows[0]["layer"] == 1


def test_singular_values_come_largest_first(run: Run) -> None:
    rows = json.loads(run("circuits", "--model", "copy", "--layer", "0", "--values", "ov", "--format", "json").out)
    of_head = [row["singular value"] for row in rows if row["head"] == 0]
    assert of_head == sorted(of_head, reverse=True)
    assert {row["layer"] for row in rows} == {0}


def test_a_matrix_of_a_head_is_shown_in_every_format(run: Run) -> None:
    head = list(circuits(Model.load("copy").trace(ids=[4])))[6]
    command = ("circuits", "--model", "copy", "--matrix", "ov", "--layer", "1", "--head", "2")
    first = next(csv.reader(io.StringIO(run(*command, "--format", "csv").out.split("\n", 1)[1])))
    assert [float(cell) for cell in first[1:]] == pytest.approx(head.ov[0].tolist(), rel=1e-6)
    assert run(*command, "--format", "svg").out.startswith("<svg")
    assert "W_V W_O" in run(*command).out
    for more, says in (
        (("--head", "4"), "there is no head 4: heads are 0 to 3"),
        (("--sort", "ov"), "leave --sort"),
        (("--of", "cross"), "there is no cross here"),
    ):
        assert says in run("circuits", "--model", "copy", "--matrix", "q", *more).err
    assert "are of --matrix" in run("circuits", "--model", "copy", "--head", "1").err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("attribute", *STORY, "--tokens", "xyzzy"), 1, "'xyzzy' is no word of the vocabulary and no ID"),
        (("attribute", *STORY, "--tokens", "1,2,3"), 2, "--tokens takes a word, or two"),
        (("attribute", *STORY, "--position", "all"), 2, "reads one position"),
        (("attribute", *STORY, "--position", "9"), 1, "no position 9"),
        (("attribute", "--model", "attention"), 1, "no logits of words"),
        (("circuits", "--model", "attention"), 1, "no circuits"),
        (("circuits", "--layer", "7"), 1, "there is no layer 7"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run: Run, arguments: tuple[str, ...], code: int, says: str) -> None:
    run(*arguments).refuses(says, code=code)


def test_composition_scores_are_listed_by_their_size_and_drawn(run: Run) -> None:
    heads = list(circuits(Model.load("copy").trace(ids=[5])))
    scores = sorted((path.score for path in compositions(heads, "K")), reverse=True)
    rows = json.loads(run("circuits", "--model", "copy", "--compose", "K", "--format", "json").out)
    assert [row["score"] for row in rows] == pytest.approx(scores)
    assert len(run("circuits", "--model", "copy", "--compose", "V", "--top", "2").out.splitlines()) == 5
    assert run("circuits", "--model", "copy", "--compose", "Q", "--format", "svg").out.startswith("<svg")
    for more, says in (
        (("--top", "2"), "--top and svg are of --compose"),
        (("--compose", "Q", "--matrix", "ov"), "--matrix out"),
        (("--compose", "Q", "--layer", "0"), "leave --layer"),
    ):
        ended = run("circuits", "--model", "copy", *more)
        assert ended.code == 2
        assert says in ended.err


def test_every_head_spells_words(run: Run) -> None:
    trace = Model.load("copy").trace(ids=[5, 6, 7])
    wanted = [each.highest(2) for each in head_lens(trace, 2, layer=1, less_mean=True)]
    given = ("lens", "--model", "copy", "--ids", "5,6,7", "--by-head", "--less-mean", "--layer", "1", "--top", "2")
    rows = json.loads(run(*given, "--format", "json").out)
    assert [row["id"] for row in rows] == [word for head in wanted for word, _ in head]
    assert "less its mean over the tokens, at position 2" in run(*given).out
    assert "--less-mean is of --by-head" in run("lens", "--model", "copy", "--less-mean").err


# By gradients


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
