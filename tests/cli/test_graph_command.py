"""`graph`: the table read from the answer back, its formats, the file for viewers, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import REFERENCES, Run

from tui_transformer import Model, graph

DICTIONARIES = Path(__file__).parent.parent / "features"
TEXT = "Once there was a small girl"
STORY = ("graph", "--model", "story", "--text", TEXT)
SIZES = ("--d-model", "32", "--heads", "4", "--layers", "2", "--norm", "pre")
SMALL = ("--model", "decoder", *SIZES, "--dtype", "float64")
AT = "decoder.{}.feed_forward.norm"


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
    found = graph(Model.load("story", dtype="float64").trace(TEXT)).prune(0.9, 0.95)
    more = ("--no-features", "--threshold", "0.9", "--edge-threshold", "0.95", "--dtype", "float64")
    rows = run(*STORY, *more, "--format", "json").json
    assert [(row["target"], row["source"]) for row in rows] == [(str(e.target), str(e.source)) for e in found.edges]
    assert [row["weight"] for row in rows] == pytest.approx([edge.weight for edge in found.edges], abs=1e-9)
    table = run(*STORY, *more, "--format", "csv", "--top", "3").table
    assert [row["source"] for row in table] == [row["source"] for row in rows[:3]]


def test_several_dictionaries_and_answers_by_name(run: Run, tmp_path: Path) -> None:
    transcoder, encoder = DICTIONARIES / "circuit-tracer-relu", DICTIONARIES / "saelens-topk"
    places = ("--features", str(transcoder), "--at", AT.format(0), "--features", str(encoder), "--at", "1.output")
    options = ("--text", "the waves crashed", "--target", "waves", "--threshold", "1", "--edge-threshold", "1")
    ended = run("graph", *SMALL, *places, *options)
    assert "0 feature" in ended.out
    assert "1 feature" in ended.out
    assert ended.out.splitlines()[1].startswith("logit waves ")
    (tmp_path / "names.csv").write_text("feature,label\n" + "".join(f"{i},\x1b[31msea\n" for i in range(96)))
    labels = ("--labels", str(tmp_path / "names.csv"))
    run("graph", *SMALL, *places, *options, *labels).refuses("of one dictionary", 2)
    ended = run("graph", *SMALL, *places[4:], *options, *labels)
    assert "[31msea" in ended.out
    assert "\x1b" not in ended.out
    cross = run("graph", *SMALL, "--text", "the waves", "--features", str(DICTIONARIES / "circuit-tracer-cross-layer"),
                "--at", AT, "--format", "csv").table  # fmt: skip
    assert {row["source"].split(":")[0] for row in cross} >= {"feature", "error"}


def test_the_file_is_written_and_said(run: Run, tmp_path: Path) -> None:
    ended = run(*STORY, "--json", str(tmp_path / "girl.json"))
    assert ended.err.strip().endswith(f"wrote {tmp_path / 'girl.json'}")
    data = json.loads((tmp_path / "girl.json").read_text(encoding="utf-8"))
    assert data["metadata"]["prompt"] == TEXT
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
