"""T5: scores with biases by distance, gated layers, scaled logits, and the encoder alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import both_stacks
import numpy as np
import pytest
from both_stacks import T5, Made
from plain_numpy import random_tensors
from reference import REFERENCES, check_same, reference_of
from safetensors.numpy import load_file, save_file
from saved import checkpoint
from t5_in_numpy import bucket, logits, shapes

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops.relative_positions import bucket_of_distance
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS, DECODER_IDS = both_stacks.IDS["t5"], both_stacks.DECODER_IDS["t5"]
TABLES = [f"{stack}.0.self_attention.biased.weight" for stack in ("encoder", "decoder")]


def worst_explanations(trace: Trace, cells: int = 3) -> dict[str, float]:
    """The largest difference between what an explanation gives and what is held, in a few cells of every step."""
    rng = np.random.default_rng(5)
    return {
        name: max(
            abs(trace.explain_cell(name, tuple(int(rng.integers(size)) for size in shape)).difference)
            for _ in range(cells)
        )
        for name, shape in ((name, trace.program.shape(name)) for name in trace.program.by_name)
    }


def made(folder: Path, **changes: Any) -> Made:
    return both_stacks.made(folder, "t5", **changes)


def traced(model: Model):
    return model.trace(ids=IDS, decoder_ids=DECODER_IDS)


def test_the_reference_is_computed_as_in_numpy():
    reference = reference_of("t5")
    trace, arrays = reference.trace(), reference.expected
    tensors = {
        name: tensor.astype(np.float64) for name, tensor in load_file(REFERENCES / "t5" / "model.safetensors").items()
    }
    sizes = {"d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 2, "relative_attention_max_distance": 20}
    config = T5 | sizes | {"layer_norm_epsilon": 1e-6}
    ids, decoder_ids = (arrays[key].tolist() for key in ("input_ids", "decoder_input_ids"))
    wanted = logits(tensors, config, ids, decoder_ids, scaled=True)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-11, atol=1e-12)


def test_a_gated_layer_has_the_steps_of_a_gate(tmp_path):
    model, _, _ = made(tmp_path, feed_forward_proj="gated-gelu")
    inside = [name for name in traced(model).names if name.startswith("encoder.0.feed_forward.")]
    wanted = ("norm", "hidden", "gate", "activation", "gated", "output", "residual")
    assert inside == [f"encoder.0.feed_forward.{step}" for step in wanted]


@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
def test_explanations_give_the_values_that_are_held(tmp_path, kind):
    model, _, _ = made(tmp_path, feed_forward_proj=kind)
    worst = worst_explanations(traced(model))
    assert max(worst.values()) <= 1e-9, worst


def test_all_layers_of_a_stack_read_one_table_of_biases():
    program = reference_of("t5").trace().program
    assert [name for name in program.weights if "biased" in name] == TABLES
    for table, stack in zip(TABLES, ("encoder", "decoder"), strict=True):
        readers = [step.name for step in program.readers(table)]
        assert readers == [f"{stack}.{layer}.self_attention.biased" for layer in range(2)]


def test_scores_are_not_divided():
    trace = reference_of("t5").trace()
    scaled = [name for name in trace.program.by_name if name.endswith(".scaled")]
    assert len(scaled) == 6
    assert all(np.array_equal(trace[name], trace[name.replace("scaled", "scores")]) for name in scaled)


@pytest.mark.parametrize("kind", ["relu", "gated-gelu", "gated-silu"])
def test_other_sizes_are_computed_as_in_numpy(tmp_path, kind):
    model, tensors, config = made(tmp_path, feed_forward_proj=kind)
    wanted = logits(tensors, config, IDS, DECODER_IDS, scaled=True)
    np.testing.assert_allclose(traced(model)["output.logits"], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize(
    "said", [{"tie_word_embeddings": False}, {"tie_word_embeddings": True, "scale_decoder_outputs": False}]
)
def test_without_scaling_the_head_is_the_one_of_the_file_or_the_table(tmp_path, head, said):
    model, tensors, config = made(tmp_path, head=head, **said)
    trace = traced(model)
    wanted = logits(tensors, config, IDS, DECODER_IDS, scaled=False)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)
    assert ("output.logits.weight" in trace.program.weights) == head


def test_newer_and_older_files_say_the_same(tmp_path):
    older, _, _ = made(tmp_path / "older", feed_forward_proj="gated-gelu")
    newer, _, _ = made(tmp_path / "newer", feed_forward_proj="gated-gelu", dense_act_fn="gelu_new", is_gated_act=True)
    assert newer.config == older.config
    assert (older.config.dense_act_fn, older.config.is_gated_act) == ("gelu_new", True)


def test_sizes_may_have_their_general_names_and_the_decoder_none(tmp_path):
    general = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
    own = ("d_model", "num_layers", "num_heads", "num_decoder_layers")
    config = {key: value for key, value in T5.items() if key not in own} | general
    tensors = random_tensors(shapes(T5 | {"num_layers": 2}, gated=False, head=False))
    settings = Model.load(checkpoint(tmp_path, config, tensors), device="cpu").config.to_json()
    assert [settings[key] for key in own] == [12, 2, 3, 2]


@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 20), (16, 64), (32, 256), (6, 11)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_exact_and_then_grow_with_the_logarithm(count, farthest, bidirectional):
    side = count // 2 if bidirectional else count
    buckets = bucket_of_distance(side, farthest)
    wanted = [bucket(-i, count, farthest, bidirectional=bidirectional) for i in range(farthest + 1)]
    assert list(buckets) == wanted
    assert buckets[-1] == side - 1


def test_a_window_of_a_dropped_array_is_the_part_of_the_whole(tmp_path):
    model, _, _ = made(tmp_path)
    kept, dropped = traced(model), replace(model.trace(ids=IDS, decoder_ids=DECODER_IDS, budget=0), block=64)
    region = (range(1, 2), range(3, 9), range(2, 7))
    for name in ("encoder.0.self_attention.biased", "decoder.1.self_attention.biased"):
        part = kept[name][1:2, 3:9, 2:7]
        np.testing.assert_allclose(dropped.window(name, region), part, rtol=1e-12)
    np.testing.assert_allclose(dropped["output.logits"], kept["output.logits"], rtol=1e-12)
    assert not any(name.endswith("biased") for name in dropped.held)


def test_a_bias_collects_the_gradients_of_all_layers(tmp_path):
    model, _, _ = made(tmp_path)
    trace, step = traced(model), 1e-6
    targets = [*DECODER_IDS[1:], 1]
    computed = gradients(trace, [targets]).values
    for table in TABLES:
        index, held = (1, 2), trace[table][1, 2]
        ends = [gradients(trace.edited([Edit(table, index, held + move)]), [targets]).loss for move in (step, -step)]
        assert computed[table][index] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-9)


def test_a_scaled_output_with_a_matrix_of_its_own_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"lm_head.weight and shared.weight differ"):
        made(tmp_path, head=True)


def test_the_encoder_may_be_alone(tmp_path):
    shutil.copytree(REFERENCES / "t5", tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / "model.safetensors")
    encoder = {name: tensor for name, tensor in tensors.items() if not name.startswith(("decoder.", "lm_head."))}
    save_file(encoder, tmp_path / "model.safetensors")
    model = Model.load(tmp_path, device="cpu", dtype="float64")
    arrays = reference_of("t5").expected
    ids, wanted = arrays["input_ids"].tolist(), arrays["hidden_2"]
    assert not model.has_decoder
    np.testing.assert_allclose(model.trace(ids=ids)["encoder.norm"], wanted, rtol=0, atol=1e-9)
    model.save(tmp_path / "saved")
    again = Model.load(tmp_path / "saved", device="cpu", dtype="float64")
    check_same(again, model, ids, "encoder.norm")
