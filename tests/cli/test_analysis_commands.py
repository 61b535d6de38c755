"""`heads`, `links`, `rollout`, `lens`, `experts`, `attribute`, `circuits`: what the analysis gives, in every format."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Ended, Run

from tui_transformer import fit_lens, logit_lens, words_at
from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.circuits import circuits, compositions, words_of
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.analysis.input_attribution import gradient_times_input, gradients_of, integrated_gradients
from tui_transformer.analysis.measures import HEAD_MEASURES
from tui_transformer.analysis.metrics import Metric
from tui_transformer.engine.trace import Trace
from tui_transformer.guide.texts import help_text
from tui_transformer.model import Model

USUAL = ("--model", "encoder")

BERT = ("--model", str(REFERENCES / "bert"), "--ids", "2,5,7,9,3")
GPT2 = ("--model", str(REFERENCES / "gpt2"), "--ids", "2,5,7,9")


def trace_of(folder: str, ids: list[int]) -> Trace:
    return Model.load(REFERENCES / folder, device="cpu").trace(ids=ids)


def rows_of(ended: Ended) -> list[dict[str, str]]:
    assert (ended.code, ended.err) == (0, "")
    return ended.table


def test_every_measure_is_named_in_the_help_of_commands_and_described_on_the_page_of_heads(run: Run):
    helps = [run(command, "--help").out for command in ("heads", "survey")]
    for measure in HEAD_MEASURES:
        assert all(re.search(rf"\b{measure.name}\b", text) for text in helps), measure.name
        assert f"**{measure.name}**" in help_text("all-heads")


def test_heads_has_a_line_a_head_with_every_measure(run: Run) -> None:
    trace = trace_of("bert", [2, 5, 7, 9, 3])
    rows = rows_of(run("heads", *BERT, "--format", "csv"))
    assert [(row["layer"], row["head"]) for row in rows] == [(str(i), str(h)) for i in range(2) for h in range(4)]
    for row in rows:
        weights = trace[f"encoder.{row['layer']}.self_attention.weights"][int(row["head"])]
        assert float(row["itself"]) == pytest.approx(np.diag(weights).mean())
        assert float(row["previous"]) == pytest.approx(np.diag(weights, -1).mean())
        assert float(row["first"]) == pytest.approx(weights[:, 0].mean())
        assert float(row["entropy"]) == pytest.approx(-(weights * np.log2(weights)).sum(axis=1).mean(), rel=1e-5)
        assert row["induction"] == ""
    # in JSON there is null where there is no number
    rows = run("heads", *BERT, "--format", "json").json
    assert rows[0]["induction"] is None
    assert isinstance(rows[0]["entropy"], float)
    # sorted and reversed
    highest = [float(row["first"]) for row in rows_of(run("heads", *GPT2, "--sort", "first", "--format", "csv"))]
    assert highest == sorted(highest, reverse=True)
    lowest = rows_of(run("heads", *GPT2, "--sort", "first", "--reverse", "--format", "csv"))
    assert [float(row["first"]) for row in lowest] == sorted(highest)


def test_what_is_no_number_has_no_rank(run: Run) -> None:
    over = ("--edit", "output.logits *= 1e30", "--edit", "output.logits *= 1e30", "--format", "json")
    for command in ("answer", "lens"):
        assert {row["rank"] for row in run(command, *GPT2, *over).json} == {None}
    assert {row["rank"] for row in run("score", *GPT2, *over).json["tokens"]} == {None}


def test_hidden_tokens_are_said_under_the_table_and_which_attention_it_is(run: Run) -> None:
    plain, hidden = run("heads", *BERT).out, run("heads", *BERT, "--hide-special").out
    assert "renormalised" not in plain
    assert "special tokens hidden, rows renormalised" in hidden
    assert "mean over 3 queries" in hidden
    assert "mean over 1 query ·" in run("heads", "--model", "encoder", "--ids", "5").out
    assert "–" in hidden
    attentions = (("encoder", "encoder self", 8), ("decoder", "decoder self", 4), ("cross", "decoder cross", 4))
    for of, named, queries in attentions:
        out = run("heads", "--model", "encoder-decoder", "--of", of).out
        assert f"{named}-attention" in out
        assert f"mean over {queries} queries" in out


def test_links_are_the_largest_weights_and_name_their_words(run: Run) -> None:
    trace = trace_of("gpt2", [2, 5, 7, 9])
    rows = rows_of(run("links", *GPT2, "--layer", "1", "--head", "2", "--top", "3", "--format", "csv"))
    weights = trace["decoder.1.self_attention.weights"][2]
    assert [float(row["weight"]) for row in rows] == pytest.approx(np.sort(weights[1:].ravel())[::-1][:3])
    for row in rows:
        assert weights[int(row["query"]), int(row["key"])] == pytest.approx(float(row["weight"]))
    out = run("links", "--top", "2").out
    assert "waves" in out
    assert len(out.splitlines()) == 5


def test_rollout_is_a_matrix_of_shares(run: Run) -> None:
    data = run("rollout", *BERT, "--format", "json").json
    values = np.array(data["values"])
    assert data["name"] == "rollout.encoder.1"
    np.testing.assert_allclose(values.sum(axis=1), 1.0, rtol=1e-5)
    weights = trace_of("bert", [2, 5, 7, 9, 3])["encoder.0.self_attention.weights"].mean(axis=0)
    first = run("rollout", *BERT, "--layer", "0", "--format", "json").json["values"]
    np.testing.assert_allclose(first, (weights + np.eye(5)) / 2, rtol=1e-5)
    assert "R_l = Ã_l R_(l−1)" in run("rollout").out
    sink = run("rollout", "--model", str(REFERENCES / "gpt_oss"), "--ids", "5,6,7", "--format", "json").json
    assert np.array(sink["values"]).sum() == pytest.approx(3)
    assert "rows made to sum to 1" in sink["formula"]
    assert run("rollout", "--format", "svg").out.startswith("<")


def test_the_lens_begins_with_the_embedding_and_ends_with_the_models_probabilities(run: Run) -> None:
    expected = trace_of("gpt2", [2, 5, 7, 9])["output.probabilities"]
    rows = rows_of(run("lens", *GPT2, "--layer", "1", "--top", "2", "--format", "csv"))
    assert [row["rank"] for row in rows] == ["1", "2"] * 4
    for row in rows:
        assert expected[int(row["token"]), int(row["id"])] == pytest.approx(float(row["probability"]), rel=1e-5)
    assert [int(row["id"]) for row in rows[::2]] == expected.argmax(axis=1).tolist()
    rows = rows_of(run("lens", *GPT2, "--layer=-1", "--token", "2", "--format", "csv"))
    assert [(row["layer"], row["token"]) for row in rows] == [("embedding", "2")]


def test_the_tuned_lens_stands_beside_the_plain_one(run: Run) -> None:
    Path("texts.txt").write_text("The fox found a shell .\n\nA crow saw the fox .\n", encoding="utf-8")
    story = ("lens", "--model", "story", "--text", "The fox found a", "--tuned", "texts.txt", "--format", "csv")
    model = Model.load("story")
    trace, lines = model.trace("The fox found a"), Path("texts.txt").read_text("utf-8").split("\n")
    tuned = fit_lens(model.trace(line) for line in lines if line)
    rows = rows_of(run(*story, "--top", "2"))
    spelled = [words_at(each, 3)[0] for each in logit_lens(trace, tuned=tuned)]
    shown = [row for row in rows if (row["token"], row["rank"]) == ("3", "1")]
    assert [int(row["tuned id"]) for row in shown] == [word for word, _ in spelled]
    assert [float(row["tuned probability"]) for row in shown] == pytest.approx(
        [share for _, share in spelled], rel=1e-5
    )
    assert [row["id"] for row in shown] == [str(words_at(each, 3)[0][0]) for each in logit_lens(trace)]
    assert float(shown[-1]["divergence"]) == pytest.approx(float(shown[-1]["tuned divergence"]), abs=1e-6)
    heads = rows_of(run(*story, "--by-head", "--layer", "1", "--token", "2"))
    expected = [each.highest(1)[0] for each in head_lens(trace, 2, layer=1, tuned=tuned)]
    assert [int(row["tuned id"]) for row in heads] == [word for word, _ in expected]
    assert [float(row["tuned logit"]) for row in heads] == pytest.approx([raised for _, raised in expected], rel=1e-5)
    assert f"affine maps fitted on {tuned[0].tokens} tokens of texts.txt" in run(*story[:-1], "text").out
    # an empty file
    Path("empty.txt").write_text("\n \n")
    assert "empty.txt: no text in it" in run("lens", "--model", "story", "--tuned", "empty.txt", code=1).err


# Experts


MIXTRAL = ("--model", str(REFERENCES / "mixtral"), "--device", "cpu", "--ids", "5,7,9,33,12,8", "--format", "json")


def test_loads_and_choices_of_experts_say_the_same(run: Run) -> None:
    loads = run("experts", *MIXTRAL).json
    who = run("experts", "--who", *MIXTRAL).json
    counted = Counter((each["layer"], str(each["expert"])) for each in who)
    assert {(each["layer"], each["expert"]): each["tokens"] for each in loads if each["tokens"]} == counted
    assert {each["layer"] for each in loads} == {"0", "1"}
    assert [each["rank"] for each in who[:2]] == [1, 2]
    assert who[0]["share"] >= who[1]["share"]
    assert {each["layer"] for each in run("experts", *MIXTRAL, "--layer", "1").json} == {"1"}
    text = run("experts", *MIXTRAL[:-1], "text")
    assert text.out.splitlines()[0].split() == ["layer", "expert", "tokens", "even", "mean", "share"]


# `attribute` and `circuits`


IDS = "5,6,7,8,9"
STORY = ("--model", "story", "--ids", IDS)


def test_terms_are_those_of_the_analysis_and_sum_to_the_logit(run: Run) -> None:
    rows = run("attribute", *STORY, "--tokens", "11,12", "--format", "json").json
    attribution = attribute(Model.load("story").trace(ids=[5, 6, 7, 8, 9]), 11, 12, position=4)
    assert [row["value"] for row in rows] == [term.value for term in attribution.terms]
    assert {row["kind"] for row in rows} == {"embedding", "head", "layer", "bias"}
    assert abs(sum(row["value"] for row in rows) - attribution.logit) < 1e-4
    rows = run("attribute", *STORY, "--neurons", "--format", "csv").table
    assert sum(row["kind"] == "neuron" for row in rows) == 960


def test_words_are_found_with_and_without_their_space_and_the_most_likely_where_none_is_named(run: Run) -> None:
    out = run("attribute", *STORY, "--tokens", "Mira,the", "--top", "3").out
    assert "logit of ␣Mira less that of ␣the at position 4" in out
    assert len(out.splitlines()) == 6
    assert "remainder" in out
    assert "logit of question at position 0" in run("attribute", "--model", "question").out
    # a model of labels is told so before a position is asked for, and where one is given
    labels = ("attribute", "--model", str(REFERENCES.parent / "classifiers" / "opt"), "--ids", "5,6,7")
    for position in ((), ("--position", "0")):
        run(*labels, *position).refuses("the model has no logits of words", 1)
    # what would be left unread is refused
    run("attribute", *STORY, "--of", "1.output").refuses("--of is of --by gradient and integrated", 2)
    for how in (("--baseline", "mean"), ("--by", "gradient", "--points", "8")):
        run("attribute", *STORY, *how).refuses("--baseline and --points are of --by integrated", 2)


def test_circuits_are_those_of_the_analysis(run: Run) -> None:
    rows = run("circuits", "--model", "copy", "--sort", "copying", "--format", "json").json
    trace = Model.load("copy").trace(ids=[4])
    words = words_of(trace)
    scores = sorted((words.copying(each) for each in circuits(trace)), reverse=True)
    assert [row["copying"] for row in rows] == scores
    assert rows[0]["layer"] == 1
    # singular values come largest first
    rows = run("circuits", "--model", "copy", "--layer", "0", "--values", "ov", "--format", "json").json
    of_head = [row["singular value"] for row in rows if row["head"] == 0]
    assert of_head == sorted(of_head, reverse=True)
    assert {row["layer"] for row in rows} == {0}
    # they are of finite weights, of heads and of words
    for name in ("encoder.0.self_attention.query.weight", "embedding.tokens.weight[1]"):
        assert "not finite" in run("circuits", "--edit", f"{name} = inf", code=1).err


def test_a_matrix_of_a_head_is_shown_in_every_format(run: Run) -> None:
    head = list(circuits(Model.load("copy").trace(ids=[4])))[6]
    command = ("circuits", "--model", "copy", "--matrix", "ov", "--layer", "1", "--head", "2")
    first = next(csv.reader(io.StringIO(run(*command, "--format", "csv").out.split("\n", 1)[1])))
    assert [float(cell) for cell in first[1:]] == pytest.approx(head.ov[0].tolist(), rel=1e-6)
    assert run(*command, "--format", "svg").out.startswith("<svg")
    assert "W_V W_O" in run(*command).out


def test_composition_scores_are_listed_by_their_size_and_drawn(run: Run) -> None:
    heads = list(circuits(Model.load("copy").trace(ids=[5])))
    scores = sorted((path.score for path in compositions(heads, "K")), reverse=True)
    rows = run("circuits", "--model", "copy", "--compose", "K", "--format", "json").json
    assert [row["score"] for row in rows] == pytest.approx(scores)
    assert len(run("circuits", "--model", "copy", "--compose", "V", "--top", "2").out.splitlines()) == 5
    assert run("circuits", "--model", "copy", "--compose", "Q", "--format", "svg").out.startswith("<svg")
    run("circuits", "--model", "copy", "--compose", "Q", "--of", "decoder").refuses("leave --layer, --head, --of", 2)


def test_every_head_spells_words(run: Run) -> None:
    trace = Model.load("copy").trace(ids=[5, 6, 7])
    wanted = [each.highest(2) for each in head_lens(trace, 2, layer=1, less_mean=True)]
    given = ("lens", "--model", "copy", "--ids", "5,6,7", "--by-head", "--less-mean", "--layer", "1", "--top", "2")
    rows = run(*given, "--format", "json").json
    assert [row["id"] for row in rows] == [word for head in wanted for word, _ in head]
    assert "less its mean over the tokens, at position 2" in run(*given).out


# By gradients


GIVEN = ("--model", "copy", "--ids", "5,6,7,8,5", "--tokens", "11,12")
METRIC, LAST = Metric("difference", (11, 12)), range(4, 5)


def test_a_line_a_token_is_that_of_the_analysis(run: Run) -> None:
    trace = Model.load("copy").trace(ids=[5, 6, 7, 8, 5])
    rows = run("attribute", *GIVEN, "--by", "gradient", "--format", "json").json
    np.testing.assert_allclose(
        [row["gradient × input"] for row in rows], gradient_times_input(trace, METRIC, LAST).rows, atol=1e-5
    )
    rows = run("attribute", *GIVEN, "--by", "integrated", "--points", "8", "--format", "json").json
    integrated = integrated_gradients(trace, METRIC, LAST, points=8)
    np.testing.assert_allclose([row["integrated gradient"] for row in rows], integrated.rows, atol=1e-4)


def test_text_says_what_they_sum_to_and_what_is_left(run: Run) -> None:
    model = Model.load("copy")
    trace = model.trace(ids=[5, 6, 7, 8, 5])
    mean = trace["embedding.output"].astype(np.float64).mean(axis=0)
    integrated = integrated_gradients(trace, METRIC, LAST, baseline=mean, points=4)
    integrating = ("attribute", *GIVEN, "--by", "integrated", "--points", "4")
    out = run(*integrating, "--baseline", "mean", "--top", "2").out
    assert len(out.splitlines()) == 5
    assert f"of the baseline {integrated.baseline:.4f}" in out
    assert "remainder " in out
    word = run(*integrating, "--baseline", "9").out
    rows = model.trace(ids=[9] * 5)["embedding.output"].astype(np.float64)
    assert f"of the baseline {integrated_gradients(trace, METRIC, LAST, baseline=rows, points=4).baseline:.4f}" in word


def test_words_are_targets_between_commas_and_in_several_options(run: Run) -> None:
    line = ("ablate", "--model", "story", "--ids", "5,6,7", "--each", "layer", "--metric", "loss", "--format", "csv")
    wanted = run(*line, "--targets", "crow -1 5", code=0).out
    assert wanted.count("\n") == 4
    for targets in (["crow,-1,5"], ["crow, -1, 5"], ["crow", "-1,5"]):
        assert run(*line, *(f"--targets={each}" for each in targets), code=0).out == wanted


def test_a_word_is_the_baseline_of_the_sequence_that_the_input_is_of(run: Run) -> None:
    model, step, read = Model.load("dates"), "decoder.embedding.output", {"ids": [10, 8, 32, 0], "mask": [1, 1, 1, 0]}
    trace = model.trace(**read, decoder_ids=[2, 6, 4])
    rows = model.trace(**read, decoder_ids=[7] * 3)[step].astype(np.float64)
    wanted = integrated_gradients(trace, Metric("logit", (6,)), range(2, 3), step, baseline=rows, points=4)
    given = ("--ids", "10,8,32,0", "--mask", "1,1,1,0", "--decoder-ids", "2,6,4", "--metric", "logit", "--tokens", "2")
    how = ("--by", "integrated", "--points", "4", "--of", step, "--baseline", "-", "--format", "json")
    found = run("attribute", "--model", "dates", *given, *how).json
    assert np.abs(wanted.rows).max() > 0.1
    np.testing.assert_allclose([row["integrated gradient"] for row in found], wanted.rows, atol=1e-4)


def test_the_gradient_of_a_metric_is_shown_and_explained(run: Run) -> None:
    computed = gradients_of(Model.load("copy").trace(ids=[5, 6, 7, 8, 5]), METRIC, LAST)
    ended = run("show", "0.self_attention.weights", *GIVEN, "--gradient", "--head", "1", "--format", "json")
    shown = ended.json
    np.testing.assert_allclose(shown["values"], computed.values["decoder.0.self_attention.weights"][1], atol=1e-6)
    assert f"{computed.loss:.5g}"[:5] in ended.err
    explained = run("show", "output.logits", *GIVEN, "--gradient", "--explain", "4,12", "--format", "json").json
    assert explained["recomputed"] == -1
    (title,) = run("show", "output.logits", *GIVEN, "--gradient").out.splitlines()[:1]
    assert title.startswith("∂(logit of h less that of d)/∂output.logits")


def test_the_remainder_of_experts_is_said_to_hold_their_jumps(run: Run) -> None:
    ids = ("--model", str(REFERENCES / "mixtral"), "--ids", "5,9,7", "--tokens", "8", "--by", "integrated")
    assert "· with the jumps where a token goes to another expert" in run("attribute", *ids, "--points", "2").out
    gpt2 = ("--model", str(REFERENCES / "gpt2"), *ids[2:])
    assert "another expert" not in run("attribute", *gpt2, "--points", "2").out


def test_of_a_classifier_of_sentences_it_is_said_which_step_is_read(run: Run) -> None:
    given = ("--model", str(REFERENCES.parent / "classifiers/bart"), "--ids", "5,6,7,8")
    lines = run("ablate", *given, code=0).out.splitlines()
    assert lines[0] == "each set to 0, alone; decoder.1.feed_forward.norm is read at positions 0 to 3"
    (line,) = (line for line in lines if "head:decoder.1.cross_attention:2" in line)
    said = run("ablate", "head:decoder.1.cross_attention:2", *given, code=0).out
    assert said.endswith(f"\nrelative change of decoder.1.feed_forward.norm at positions 0 to 3: {line.split()[-1]}\n")
