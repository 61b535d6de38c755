"""Caches that TransformerLens 4.3.0 (`TransformerBridge`, `run_with_cache`) wrote for the reference checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dumping import blamed

from tui_transformer.diagnosis import Diagnosis, diagnose
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.diagnosis.reference_values import Input
from tui_transformer.model import Model

HERE = Path(__file__).parent
FAMILIES = ("gpt2", "gemma2", "bloom", "mixtral")


def diagnosed(path: Path, family: str) -> Diagnosis:
    dump = open_dump(path)
    return diagnose(dump, Model.load(HERE.parent / "references" / family, device="cpu"), Input(dump.ids))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cache_of_the_library_agrees_from_embedding_to_logits_every_hook_in_the_layer_of_its_name(
    family: str,
) -> None:
    diagnosis = diagnosed(HERE / "transformer_lens" / f"{family}.npz", family)
    assert diagnosis.first is None
    compared = {each.step for each in diagnosis.steps}
    layers = {"self_attention.weights", "self_attention.masked", "self_attention.context", "feed_forward.output"}
    assert {f"decoder.{i}.{step}" for i in (0, 1) for step in layers} <= compared
    assert "decoder.norm" in compared
    assert all(any(step.startswith(part) for step in compared) for part in ("embedding.", "output."))
    for each in diagnosis.steps:
        number = each.theirs.removeprefix("blocks.").partition(".")[0]
        if each.theirs.startswith("blocks.") and ".hook_resid_pre" not in each.theirs:
            assert each.step.startswith(f"decoder.{number}."), each.theirs


HOOKS = {
    ("gpt2", "blocks.1.ln1.hook_out"): "decoder.1.self_attention.norm",
    ("gpt2", "blocks.1.attn.q.hook_out"): "decoder.1.self_attention.query",
    ("gpt2", "blocks.0.hook_resid_mid"): "decoder.0.self_attention.residual",
    ("gpt2", "blocks.1.mlp.in.hook_out"): "decoder.1.feed_forward.hidden",
    ("gpt2", "unembed.hook_out"): "output.logits",
    # scores whose distances count otherwise within a row
    ("bloom", "blocks.0.attn.hook_attn_scores"): "decoder.0.self_attention.masked",
}


@pytest.mark.parametrize(("family", "hook"), HOOKS)
def test_a_wrong_hook_is_named(tmp_path: Path, family: str, hook: str) -> None:
    arrays = dict(np.load(HERE / "transformer_lens" / f"{family}.npz"))
    np.savez(tmp_path / "cache.npz", **arrays | {hook: arrays[hook] * 0.5})
    first = blamed(diagnosed(tmp_path / "cache.npz", family).first)
    assert (first.step, first.theirs) == (HOOKS[family, hook], hook)


def test_the_values_before_gamma_are_no_norm_where_those_behind_it_are_there(tmp_path: Path) -> None:
    arrays = dict(np.load(HERE / "transformer_lens" / "gpt2.npz"))
    for name in [name for name in arrays if ".ln" in name and name.endswith("hook_out")]:
        del arrays[name]
    np.savez(tmp_path / "cache.npz", **arrays)
    first = blamed(diagnosed(tmp_path / "cache.npz", "gpt2").first)
    assert first.theirs == "blocks.0.ln1.hook_normalized"
    assert "γ" in first.says
