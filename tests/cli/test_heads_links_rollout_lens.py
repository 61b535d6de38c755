"""`heads`, `links`, `rollout` and `lens`: the same numbers as the analysis, in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Ended, Run

from tui_transformer import fit_lens, head_lens, logit_lens, words_at
from tui_transformer.analysis.measures import HEAD_MEASURES, Measure
from tui_transformer.engine.trace import Trace
from tui_transformer.guide.texts import help_text
from tui_transformer.model import Model

USUAL = ("--model", "encoder")

BERT = ("--model", str(REFERENCES / "bert"), "--ids", "2,5,7,9,3")
GPT2 = ("--model", str(REFERENCES / "gpt2"), "--ids", "2,5,7,9")


def trace_of(folder: str, ids: list[int]) -> Trace:
    return Model.load(REFERENCES / folder, device="cpu").trace(ids=ids)


def table(ended: Ended) -> list[dict[str, str]]:
    assert (ended.code, ended.err) == (0, "")
    return list(csv.DictReader(io.StringIO(ended.out)))


@pytest.mark.parametrize("measure", HEAD_MEASURES, ids=lambda measure: measure.name)
def test_every_measure_is_named_in_the_help_of_commands_and_described_on_the_page_of_heads(run: Run, measure: Measure):
    for command in ("heads", "survey"):
        assert re.search(rf"\b{measure.name}\b", run(command, "--help").out), command
    assert f"**{measure.name}**" in help_text("all-heads")


def test_heads_has_a_line_a_head_with_every_measure(run: Run) -> None:
    trace = trace_of("bert", [2, 5, 7, 9, 3])
    rows = table(run("heads", *BERT, "--format", "csv"))
    assert [(row["layer"], row["head"]) for row in rows] == [(str(i), str(h)) for i in range(2) for h in range(4)]
    for row in rows:
        weights = trace[f"encoder.{row['layer']}.self_attention.weights"][int(row["head"])]
        assert float(row["itself"]) == pytest.approx(np.diag(weights).mean())
        assert float(row["previous"]) == pytest.approx(np.diag(weights, -1).mean())
        assert float(row["first"]) == pytest.approx(weights[:, 0].mean())
        assert float(row["entropy"]) == pytest.approx(-(weights * np.log2(weights)).sum(axis=1).mean(), rel=1e-5)
        assert row["induction"] == ""


def test_heads_are_sorted_and_reversed(run: Run) -> None:
    highest = [float(row["first"]) for row in table(run("heads", *GPT2, "--sort", "first", "--format", "csv"))]
    assert highest == sorted(highest, reverse=True)
    lowest = table(run("heads", *GPT2, "--sort", "first", "--reverse", "--format", "csv"))
    assert [float(row["first"]) for row in lowest] == sorted(highest)


def test_hidden_tokens_are_said_under_the_table(run: Run) -> None:
    plain, hidden = run("heads", *BERT).out, run("heads", *BERT, "--hide-special").out
    assert "renormalised" not in plain
    assert "special tokens hidden, rows renormalised" in hidden
    assert "mean over 3 queries" in hidden
    assert "–" in hidden


def test_json_has_null_where_there_is_no_number(run: Run) -> None:
    rows = json.loads(run("heads", *BERT, "--format", "json").out)
    assert rows[0]["induction"] is None
    assert isinstance(rows[0]["entropy"], float)


@pytest.mark.parametrize(
    ("of", "named", "queries"),
    [
        ("encoder", "encoder self-attention", 8),
        ("decoder", "decoder self-attention", 4),
        ("cross", "decoder cross-attention", 4),
    ],
)
def test_which_attention(run: Run, of: str, named: str, queries: int) -> None:
    ended = run("heads", "--model", "encoder-decoder", "--of", of)
    assert named in ended.out
    assert f"mean over {queries} queries" in ended.out


def test_links_are_the_largest_weights(run: Run) -> None:
    trace = trace_of("gpt2", [2, 5, 7, 9])
    rows = table(run("links", *GPT2, "--layer", "1", "--head", "2", "--top", "3", "--format", "csv"))
    weights = trace["decoder.1.self_attention.weights"][2]
    assert [float(row["weight"]) for row in rows] == pytest.approx(np.sort(weights[1:].ravel())[::-1][:3])
    for row in rows:
        assert weights[int(row["query"]), int(row["key"])] == pytest.approx(float(row["weight"]))


def test_links_name_their_words(run: Run) -> None:
    out = run("links", "--top", "2").out
    assert "waves" in out
    assert len(out.splitlines()) == 5


def test_rollout_is_a_matrix_of_shares(run: Run) -> None:
    data = json.loads(run("rollout", *BERT, "--format", "json").out)
    values = np.array(data["values"])
    assert data["name"] == "rollout.encoder.1"
    np.testing.assert_allclose(values.sum(axis=1), 1.0, rtol=1e-5)
    weights = trace_of("bert", [2, 5, 7, 9, 3])["encoder.0.self_attention.weights"].mean(axis=0)
    first = json.loads(run("rollout", *BERT, "--layer", "0", "--format", "json").out)["values"]
    np.testing.assert_allclose(first, (weights + np.eye(5)) / 2, rtol=1e-5)


def test_rollout_as_text_and_svg(run: Run) -> None:
    assert "R_l = Ã_l R_(l−1)" in run("rollout").out
    assert run("rollout", "--format", "svg").out.startswith("<")


def test_the_lens_ends_with_the_models_probabilities(run: Run) -> None:
    expected = trace_of("gpt2", [2, 5, 7, 9])["output.probabilities"]
    rows = table(run("lens", *GPT2, "--layer", "1", "--top", "2", "--format", "csv"))
    assert [row["rank"] for row in rows] == ["1", "2"] * 4
    for row in rows:
        assert expected[int(row["token"]), int(row["id"])] == pytest.approx(float(row["probability"]), rel=1e-5)
    assert [int(row["id"]) for row in rows[::2]] == expected.argmax(axis=1).tolist()


def test_the_lens_begins_with_the_embedding(run: Run) -> None:
    rows = table(run("lens", *GPT2, "--layer=-1", "--token", "2", "--format", "csv"))
    assert [(row["layer"], row["token"]) for row in rows] == [("embedding", "2")]


def test_the_tuned_lens_stands_beside_the_plain_one(run: Run) -> None:
    Path("texts.txt").write_text("The fox found a shell .\n\nA crow saw the fox .\n", encoding="utf-8")
    story = ("lens", "--model", "story", "--text", "The fox found a", "--tuned", "texts.txt", "--format", "csv")
    model = Model.load("story")
    trace, lines = model.trace("The fox found a"), Path("texts.txt").read_text("utf-8").split("\n")
    tuned = fit_lens(model.trace(line) for line in lines if line)
    rows = table(run(*story, "--top", "2"))
    spelled = [next(words_at(each, 3)) for each in logit_lens(trace, tuned=tuned)]
    shown = [row for row in rows if (row["token"], row["rank"]) == ("3", "1")]
    assert [int(row["tuned id"]) for row in shown] == [word for word, _ in spelled]
    assert [float(row["tuned probability"]) for row in shown] == pytest.approx(
        [share for _, share in spelled], rel=1e-5
    )
    assert [row["id"] for row in shown] == [str(next(words_at(each, 3))[0]) for each in logit_lens(trace)]
    assert float(shown[-1]["divergence"]) == pytest.approx(float(shown[-1]["tuned divergence"]), abs=1e-6)
    heads = table(run(*story, "--by-head", "--layer", "1", "--token", "2"))
    expected = [each.highest(1)[0] for each in head_lens(trace, 2, layer=1, tuned=tuned)]
    assert [int(row["tuned id"]) for row in heads] == [word for word, _ in expected]
    assert [float(row["tuned logit"]) for row in heads] == pytest.approx([raised for _, raised in expected], rel=1e-5)
    assert f"affine maps fitted on {tuned[0].tokens} tokens of texts.txt" in run(*story[:-1], "text").out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("heads", "--sort", "mood"), 2, "--sort 'mood' is no measure: use entropy"),
        (("heads", "--layer", "7"), 1, "there is no layer 7: layers are 0 to 0"),
        (("heads", "--of", "cross"), 1, "there is no cross here: choose encoder self-attention"),
        (("links", "--head", "9"), 1, "there is no head 9: heads are 0 to 7"),
        (("rollout", "--layer", "9"), 1, "there is no layer 9"),
        (("rollout", "--of", "cross", "--model", "encoder-decoder"), 1, "there is no cross self-attention here"),
        (("lens", "--token", "99"), 1, "there is no token 99: tokens are 0 to 7"),
        (("lens", "--layer", "5"), 1, "there is no layer 5"),
        (("lens", "--model", "attention"), 1, "no output head"),
        (("lens", "--tuned", "nowhere.txt"), 1, "nowhere.txt cannot be read"),
        (("lens", "--by-head", "--tuned", "nowhere.txt", "--model", "copy"), 1, "nowhere.txt cannot be read"),
    ],
)
def test_mistakes_get_one_line(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    run(*arguments).refuses(message, code=code)


def test_an_empty_file_to_fit_a_lens_on_is_named(run, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    ended = run("lens", "--model", "story", "--tuned", "empty.txt")
    assert ended.code == 1
    assert "empty.txt: no text in it" in ended.err


# Experts


MIXTRAL = ("--model", str(REFERENCES / "mixtral"), "--device", "cpu", "--ids", "5,7,9,33,12,8", "--format", "json")


def test_loads_and_choices_say_the_same(run: Run) -> None:
    loads = json.loads(run("experts", *MIXTRAL).out)
    who = json.loads(run("experts", "--who", *MIXTRAL).out)
    counted = Counter((each["layer"], str(each["expert"])) for each in who)
    assert {(each["layer"], each["expert"]): each["tokens"] for each in loads if each["tokens"]} == counted
    assert {each["layer"] for each in loads} == {"0", "1"}
    assert [each["rank"] for each in who[:2]] == [1, 2]
    assert who[0]["share"] >= who[1]["share"]


def test_one_layer_and_the_text(run: Run) -> None:
    assert {each["layer"] for each in json.loads(run("experts", *MIXTRAL, "--layer", "1").out)} == {"1"}
    text = run("experts", *MIXTRAL[:-1], "text")
    assert text.out.splitlines()[0].split() == ["layer", "expert", "tokens", "even", "mean", "share"]


def test_a_model_without_experts_and_a_layer_that_is_not_there_are_refused(run: Run) -> None:
    other = run("experts", "--model", str(REFERENCES / "llama"), "--ids", "5,6")
    assert other.code == 1
    assert "has no experts" in other.err
    far = run("experts", *MIXTRAL, "--layer", "9")
    assert (far.code, "layer 9 has no experts: 0, 1 have" in far.err) == (1, True)
