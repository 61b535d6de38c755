"""`features`: the strongest features of every token, with labels, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Run

from tui_transformer import Add, Features, Model, generate

DICTIONARIES = Path(__file__).parent.parent / "features"
TEXT = "the waves crashed"
SMALL = ("--model", "decoder", "--d-model", "32", "--heads", "4", "--norm", "pre", "--dtype", "float64", "--text", TEXT)


def of(name: str, *more: str) -> tuple[str, ...]:
    return ("features", str(DICTIONARIES / name), *SMALL, *more)


def test_json_has_the_numbers_of_the_library_and_text_a_line_a_feature(run: Run) -> None:
    rows = run(*of("saelens-topk", "--at", "0.output", "--top", "2", "--format", "json")).json
    model = Model.load("decoder", d_model=32, heads=4, norm="pre", dtype="float64")
    added = model.with_features(Features.load(DICTIONARIES / "saelens-topk"), "decoder.0.output")
    values = added.trace(TEXT)["decoder.0.output.features"]
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
AT = "decoder.0.output.features"


def test_other_commands_have_features_as_steps(run: Run) -> None:
    model = Model.load("decoder", d_model=32, heads=4, norm="pre", dtype="float64")
    model = model.with_features(Features.load(DICTIONARIES / "saelens-topk"), "decoder.0.output")
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
