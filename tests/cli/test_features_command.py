"""`features`: the strongest features of every token, with labels; `graph`: those that lead to an answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer import Add, Features, Model, generate, graph

DICTIONARIES = Path(__file__).parent.parent / "features"
TEXT = "the waves crashed"
SIZED = ("--model", "decoder", "--d-model", "32", "--heads", "4", "--norm", "pre", "--dtype", "float64")
SMALL = (*SIZED, "--text", TEXT)
AT = "decoder.0.output.features"

SHARES = {"bart-answers": [""], "t5-tokens": ["0.84"]}
"""What graphs of classifiers say of the likeliest label: where an answer begins and ends has no share among labels."""


def of(name: str, *more: str) -> tuple[str, ...]:
    return ("features", str(DICTIONARIES / name), *SMALL, *more)


def featured() -> Model:
    """The model with the features of a dictionary of its only layer."""
    model = Model.load("decoder", d_model=32, heads=4, norm="pre", dtype="float64")
    return model.with_features(Features.load(DICTIONARIES / "saelens-topk"), "decoder.0.output")


def test_json_has_the_numbers_of_the_library_and_text_a_line_a_feature(run: Run) -> None:
    rows = run(*of("saelens-topk", "--at", "0.output", "--top", "2", "--format", "json")).json
    values = featured().trace(TEXT)[AT]
    assert [row["feature"] for row in rows] == np.argsort(-values, axis=1)[:, :2].reshape(-1).tolist()
    assert [row["value"] for row in rows] == pytest.approx(-np.sort(-values, axis=1)[:, :2].reshape(-1), abs=1e-12)
    assert [row["active"] for row in rows[::2]] == np.count_nonzero(values, axis=1).tolist()
    assert [row["token"] for row in rows[::2]] == TEXT.split()
    assert rows[0]["raises"].count(", ") == rows[0]["lowers"].count(", ") == 2
    lines = run(*of("saelens-topk", "--at", "0.output", "--top", "1", "--token", "1", "--words", "0")).out.splitlines()
    assert lines[0].split() == ["position", "token", "active", "error", "rank", "feature", "value", "left"]
    assert lines[1].split()[:2] == ["1", "waves"]
    assert lines[3].endswith("saelens-topk at decoder.0.output")


def test_features_that_are_named_and_their_labels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("feature,label\n7,\x1b[31mthe sea\n")
    more = ("--at", "0.output", "--feature", "7,3", "--labels", str(tmp_path / "labels.csv"))
    assert "\x1b" not in run(*of("saelens-topk", *more)).out
    rows = run(*of("saelens-topk", *more, "--format", "csv")).table
    assert [row["feature"] for row in rows] == ["7", "3"] * 3
    assert {row["label"] for row in rows} == {"\x1b[31mthe sea", ""}


def test_the_dictionary_that_comes_with_a_model_is_read_where_none_is_named(run: Run) -> None:
    told = run("features", "--model", "story", "--text", "Once there was", "--top", "1", "--words", "0").out
    assert "story/features at decoder.1.output" in told
    assert "Once there [was]" in told  # of its labels
    # a transcoder of several layers has a place in each
    at = "decoder.{}.feed_forward.norm"
    rows = run(*of("circuit-tracer-cross-layer", "--layers", "2", "--at", at, "--format", "csv", "--top", "1")).table
    assert [row["at"] for row in rows] == [at.format(layer) for layer in (0, 1) for _ in range(3)]


def test_edits_reach_features_and_where_these_spell_no_words_that_is_said(run: Run) -> None:
    more = ("--at", "0.output", "--format", "json", "--replace", "--edit")
    rows = run(*of("saelens-topk", *more, "decoder.0.output.features[:, 0:96] = 0")).json
    assert all(row["active"] == 0 and row["feature"] is None for row in rows)
    assert len(rows) == 3
    line = list(of("saelens-topk", "--at", "encoder.0.output", "--top", "1"))
    line[line.index("decoder")] = "encoder-decoder"
    ended = run(*line, code=0)
    assert "no words: " in ended.err
    assert all(row.split()[-2:] == ["–", "–"] for row in ended.out.splitlines()[1:4])


FEATURED = (*SMALL, "--features", str(DICTIONARIES / "saelens-topk"), "--at", "0.output")


def test_other_commands_have_features_as_steps(run: Run) -> None:
    model = featured()
    values = model.trace(TEXT)[AT]
    strongest = int(values[-1].argmax())
    assert run("show", AT, *FEATURED).out.startswith(f"{AT} · 3 × 96")
    (ablated,) = run("ablate", f"feature:decoder.0.output:{strongest}", *FEATURED, "--format", "json").json["edits"]
    assert str(strongest) in ablated
    changed = run("ablate", "--each", "feature", *FEATURED, "--format", "json").json["effects"]
    assert len(changed) == 96
    rows = run("attribute", "--by", "gradient", "--metric", "logit", "--tokens", "3", "--of", AT, *FEATURED).out
    assert "waves" in rows
    steps = run("patch", AT, "--from-text", "the shore crashed", *FEATURED, "--format", "json").json["steps"]
    assert steps[0]["name"] == AT
    edit = f"decoder.0.output.features[:, {strongest}] += 50"
    written = run("generate", *FEATURED, "--edit", edit, "--max-new-tokens", "5", "--greedy").out
    added = Add(AT, 50, columns=strongest)
    assert written.strip() == generate(model, TEXT, edits=[added], max_new_tokens=5, greedy=True).strip()
    for command in ("show", "ablate", "attribute", "generate"):
        assert "--at is where a dictionary reads" in run(command, *SMALL, "--at", "0.output").err


# `graph`: read from the answer back


GIRL = "Once there was a small girl"
STORY = ("graph", "--model", "story", "--text", GIRL)
TWO_LAYERS = (*SIZED, "--layers", "2")
NORM = "decoder.{}.feed_forward.norm"


def test_text_begins_at_the_answer_and_fits_eighty_columns(run: Run) -> None:
    for more in ((), ("--no-features",), ("--each-head", "--mass", "0.9"), ("--neurons", "4"), ("--top", "60")):
        lines = run(*STORY, *more).out.splitlines()
        assert max(map(len, lines)) < 80
        assert lines[0].split()[:4] == ["into", "at", "from", "at"]
        assert lines[1].startswith("logit ")
        assert "replacement" in " ".join(lines[-3:])
    assert "1 feature" in run(*STORY).out
    assert "feature" not in run(*STORY, "--no-features").out
    # models of two stacks name the stack
    out = run("graph", "--model", "dates").out
    assert "dec 0.2 cross head" in out
    assert "dec token" in out


def test_json_and_csv_have_every_edge_with_the_numbers_of_the_library(run: Run) -> None:
    found = graph(Model.load("story", dtype="float64").trace(GIRL)).prune(0.9, 0.95)
    more = ("--no-features", "--threshold", "0.9", "--edge-threshold", "0.95", "--dtype", "float64")
    rows = run(*STORY, *more, "--format", "json").json
    assert [(row["target"], row["source"]) for row in rows] == [(str(e.target), str(e.source)) for e in found.edges]
    assert [row["weight"] for row in rows] == pytest.approx([edge.weight for edge in found.edges], abs=1e-9)
    table = run(*STORY, *more, "--format", "csv", "--top", "3").table
    assert [row["source"] for row in table] == [row["source"] for row in rows[:3]]


def test_several_dictionaries_and_answers_by_name(run: Run, tmp_path: Path) -> None:
    transcoder, encoder = DICTIONARIES / "circuit-tracer-relu", DICTIONARIES / "saelens-topk"
    places = ("--features", str(transcoder), "--at", NORM.format(0), "--features", str(encoder), "--at", "1.output")
    options = ("--text", "the waves crashed", "--target", "waves", "--threshold", "1", "--edge-threshold", "1")
    ended = run("graph", *TWO_LAYERS, *places, *options)
    assert "0 feature" in ended.out
    assert "1 feature" in ended.out
    assert ended.out.splitlines()[1].startswith("logit waves ")
    (tmp_path / "names.csv").write_text("feature,label\n" + "".join(f"{i},\x1b[31msea\n" for i in range(96)))
    labels = ("--labels", str(tmp_path / "names.csv"))
    run("graph", *TWO_LAYERS, *places, *options, *labels).refuses("of one dictionary", 2)
    ended = run("graph", *TWO_LAYERS, *places[4:], *options, *labels)
    assert "[31msea" in ended.out
    assert "\x1b" not in ended.out
    layers = ("--features", str(DICTIONARIES / "circuit-tracer-cross-layer"), "--at", NORM, "--format", "csv")
    cross = run("graph", *TWO_LAYERS, "--text", "the waves", *layers).table
    assert {row["source"].split(":")[0] for row in cross} >= {"feature", "error"}


def test_the_file_is_written_and_said(run: Run, tmp_path: Path) -> None:
    ended = run(*STORY, "--json", str(tmp_path / "girl.json"))
    assert ended.err.strip().endswith(f"wrote {tmp_path / 'girl.json'}")
    data = json.loads((tmp_path / "girl.json").read_text(encoding="utf-8"))
    assert data["metadata"]["prompt"] == GIRL
    assert any(node["clerp"] for node in data["nodes"] if node["feature_type"] == "cross layer transcoder")
    run(*STORY, "--json", str(tmp_path / "none" / "girl.json")).refuses("cannot be written", 1)


def test_neurons_of_experts_are_named_by_their_expert(run: Run, tmp_path: Path) -> None:
    line = ("graph", "--model", str(REFERENCES / "qwen2_moe"), "--ids", "2,5,3,6,4", "--threshold", "1")
    assert "1 feed_forward" in run(*line).out
    file = tmp_path / "experts.json"
    out = run(*line, "--neurons", "12", "--inputs", "40", "--top", "40", "--json", str(file)).out
    assert re.search(r"1 expert \d neuron \d+ ", out)
    assert re.search(r"1 shared neuron \d+ ", out)
    nodes = [node for node in json.loads(file.read_text())["nodes"] if node["feature_type"] == "neuron"]
    assert len({(node["layer"], node["feature"], node["ctx_idx"]) for node in nodes}) == len(nodes)
    rows = run(*line, "--neurons", "12", "--format", "csv").table
    assert any(row["source"].startswith("neuron:decoder.0.feed_forward.experts.") for row in rows)


def test_a_graph_says_no_probability_where_the_model_has_none(run: Run) -> None:
    classifiers = REFERENCES.parent / "classifiers"
    shown = {name: run("graph", "--model", str(classifiers / name), "--ids", "5,6,7").out for name in SHARES}
    assert {name: re.findall(r"^logit \w+ (0\.\d\d)?", out, re.M) for name, out in shown.items()} == SHARES
