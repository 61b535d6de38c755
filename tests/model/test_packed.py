"""Quantized checkpoints give what the numbers give that their codes stand for; all others are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, changed, hold, read_or_refused
from reference import REFERENCES, in_float64, reconfigured, with_settings
from refusing import refuses
from safetensors.numpy import load_file, save_file
from saved import refusal, write_raw

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.packed_formats import MisfitError, awq, gptq

ml_dtypes = pytest.importorskip("ml_dtypes")
RNG = np.random.default_rng(11)
IDS = [5, 9, 2, 7, 11, 3]
FOURS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
Made = tuple[dict[str, tuple[str, np.ndarray]], np.ndarray]
"""Tensors by the ends of their names, each with its stored type, and the numbers that they stand for."""


def words(codes: np.ndarray, bits: int, axis: int, places: tuple[int, ...] | None = None) -> np.ndarray:
    """Codes packed into numbers of 32 bits, one after the other in Python."""
    codes = np.moveaxis(codes, axis, -1)
    many = 32 // bits
    packed = np.zeros((*codes.shape[:-1], codes.shape[-1] // many), np.int64)
    for column in range(codes.shape[-1]):
        place = column % many if places is None else places[column % many]
        packed[..., column // many] |= codes[..., column].astype(np.int64) << (bits * place)
    return np.moveaxis(packed.astype(np.uint32).view(np.int32), -1, axis)


def pairs(codes: np.ndarray) -> np.ndarray:
    """Codes of four bits, two a byte."""
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def eight(rows: int, columns: int, kind: str = "float8_e4m3fn") -> tuple[np.ndarray, np.ndarray]:
    """Bytes of floats of eight bits, and the floats."""
    floats = RNG.normal(size=(rows, columns)).astype(getattr(ml_dtypes, kind))
    return floats.view(np.uint8), floats.astype(np.float32)


def by_blocks(rows: int, columns: int) -> Made:
    codes, floats = eight(rows, columns)
    scale = RNG.uniform(0.1, 1.0, (-(-rows // 24), -(-columns // 20))).astype("f4")
    wanted = np.array([[floats[i, j] * scale[i // 24, j // 20] for j in range(columns)] for i in range(rows)], "f4")
    return {".weight": ("F8_E4M3", codes), ".weight_scale_inv": ("F32", scale)}, wanted


def by_rows(rows: int, columns: int) -> Made:
    codes, floats = eight(rows, columns, "float8_e5m2")
    scale = RNG.uniform(0.1, 1.0, (rows, 1)).astype("f4")
    return {".weight": ("F8_E5M2", codes), ".weight_scale": ("F32", scale)}, floats * scale


def by_one(rows: int, columns: int) -> Made:
    codes, floats = eight(rows, columns)
    scales = {".weight_scale": ("F32", np.array(0.25, "f4")), ".input_scale": ("F32", np.ones((), "f4"))}
    return {".weight": ("F8_E4M3", codes), **scales}, floats * np.float32(0.25)


def nv(ends: tuple[str, str, str], *, divided: bool) -> Callable[[int, int], Made]:
    def made(rows: int, columns: int) -> Made:
        codes, (scales, floats) = RNG.integers(0, 16, (rows, columns)), eight(rows, columns // 16)
        scales, floats = scales & 127, np.abs(floats)
        one = np.array([4.0], "f4")
        grouped = floats / one if divided else floats * one
        wanted = np.array(FOURS, "f4")[codes] * np.repeat(grouped, 16, axis=1)
        stored = (("U8", pairs(codes)), ("F8_E4M3", scales), ("F32", one))
        return dict(zip(ends, stored, strict=True)), wanted

    return made


def mx(rows: int, columns: int) -> Made:
    codes, scales = RNG.integers(0, 16, (rows, columns)), RNG.integers(124, 130, (rows, columns // 32)).astype("u1")
    wanted = np.array(FOURS, "f4")[codes] * np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=1)
    return {".weight_packed": ("U8", pairs(codes)), ".weight_scale": ("U8", scales)}, wanted.astype("f4")


def of_gptq(bits: int, *, ordered: bool, less: int = 1) -> Callable[[int, int], Made]:
    def made(rows: int, columns: int) -> Made:
        groups, top = columns // 8, 1 << bits
        codes, zeros = RNG.integers(0, top, (columns, rows)), RNG.integers(0, top, (groups, rows))
        scales = RNG.uniform(0.01, 0.1, (groups, rows)).astype("f2")
        which = RNG.permutation(np.arange(columns) // 8)
        which = np.sort(which) if ordered else which
        wanted = np.array([(codes[i] - zeros[which[i]]) * scales[which[i]].astype("f4") for i in range(columns)])
        stored = {
            ".qweight": ("I32", words(codes, bits, 0)),
            ".qzeros": ("I32", words((zeros - less) % top, bits, 1)),
            ".scales": ("F16", scales),
        }
        return stored | ({} if ordered else {".g_idx": ("I32", which.astype("i4"))}), wanted.T.astype("f4")

    return made


def of_awq(rows: int, columns: int) -> Made:
    groups, order = columns // 16, (0, 4, 1, 5, 2, 6, 3, 7)
    codes, zeros = RNG.integers(0, 16, (columns, rows)), RNG.integers(0, 16, (groups, rows))
    scales = RNG.uniform(0.01, 0.1, (groups, rows)).astype("f2")
    wanted = np.array([(codes[i] - zeros[i // 16]) * scales[i // 16].astype("f4") for i in range(columns)])
    stored = {
        ".qweight": ("I32", words(codes, 4, 1, order)),
        ".qzeros": ("I32", words(zeros, 4, 1, order)),
        ".scales": ("F16", scales),
    }
    return stored, wanted.T.astype("f4")


def whole(bits: int, *, zero: bool) -> Callable[[int, int], Made]:
    def made(rows: int, columns: int) -> Made:
        middle, groups = 1 << (bits - 1), columns // 16
        codes = RNG.integers(0, 2 * middle, (rows, columns))
        scales = RNG.uniform(0.01, 0.1, (rows, groups)).astype("f4")
        zeros = RNG.integers(0, 2 * middle, (rows, groups)) if zero else np.full((rows, groups), middle)
        wanted = (codes - np.repeat(zeros, 16, 1)) * np.repeat(scales, 16, 1)
        stored = {".weight_packed": ("I32", words(codes, bits, 1)), ".weight_scale": ("F32", scales)}
        more = {".weight_zero_point": ("I32", words(zeros, bits, 0))} if zero else {}
        return {**stored, **more, ".weight_shape": ("I64", np.array([rows, columns]))}, wanted.astype("f4")

    return made


def bytes_alone(rows: int, columns: int) -> Made:
    codes, scale = RNG.integers(-128, 128, (rows, columns)).astype("i1"), RNG.uniform(0.01, 0.1, (rows, 1)).astype("f4")
    return {".weight": ("I8", codes), ".weight_scale": ("F32", scale)}, codes * scale


def compressed(form: str, bits: Any = 4) -> dict[str, Any]:
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": bits}}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 8}
NV_ENDS = (".weight_packed", ".weight_scale", ".weight_global_scale")
WAYS: dict[str, tuple[dict[str, Any], Callable[[int, int], Made]]] = {
    "fp8, blocks": ({"quant_method": "fp8", "weight_block_size": [24, 20]}, by_blocks),
    "fp8, e5m2, rows": ({"quant_method": "fbgemm_fp8"}, by_rows),
    "fp8, one scale": (compressed("float-quantized", 8), by_one),
    "fp8, modelopt": ({"quant_method": "modelopt", "quant_algo": "FP8"}, by_one),
    "nvfp4": (compressed("nvfp4-pack-quantized"), nv(NV_ENDS, divided=True)),
    "nvfp4, modelopt": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        nv((".weight", ".weight_scale", ".weight_scale_2"), divided=False),
    ),
    "mxfp4": (compressed("mxfp4-pack-quantized"), mx),
    "gptq": (GPTQ, of_gptq(4, ordered=True)),
    "gptq, 8 bits": (GPTQ | {"bits": 8}, of_gptq(8, ordered=True)),
    "gptq, in any order": (GPTQ | {"desc_act": True}, of_gptq(4, ordered=False)),
    "gptq, second version": (GPTQ | {"checkpoint_format": "gptq_v2"}, of_gptq(4, ordered=True, less=0)),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm"}, of_awq),
    "awq, groups unsaid": ({"quant_method": "awq", "bits": 4, "version": "gemm"}, of_awq),
    "integers": (compressed("pack-quantized"), whole(4, zero=False)),
    "integers, zeros": (compressed("pack-quantized", 8), whole(8, zero=True)),
    "integers of a byte": (compressed("int-quantized", 8), bytes_alone),
}


def folders(way: str, at: Path) -> tuple[Path, Path]:
    """A quantized checkpoint, and one with the numbers that it stands for."""
    said, make = WAYS[way]
    stored: dict[str, tuple[str, np.ndarray]] = {}
    plain: dict[str, tuple[str, np.ndarray]] = {}
    for name, tensor in load_file(REFERENCES / "llama" / "model.safetensors").items():
        base = name.removesuffix(".weight")
        parts, numbers = make(*tensor.shape) if base.endswith("_proj") else ({".weight": ("F32", tensor)}, tensor)
        stored |= {base + end: part for end, part in parts.items()}
        plain[name] = ("F32", numbers)
    for folder, tensors, more in ((at / "packed", stored, {"quantization_config": said}), (at / "plain", plain, {})):
        with_settings(folder, "llama", **more)
        write_raw(folder / "model.safetensors", tensors)
    return at / "packed", at / "plain"


@pytest.mark.parametrize("way", WAYS)
def test_a_quantized_checkpoint_is_the_numbers_of_its_codes(way, tmp_path):
    packed, plain = (in_float64(folder) for folder in folders(way, tmp_path))
    for name in packed.program(3).weights:
        numbers, wanted = (model.weights.file.part(name, ...) for model in (packed, plain))
        np.testing.assert_allclose(numbers, wanted, rtol=2e-7, atol=0)
    one, other = (model.trace(ids=IDS)["output.logits"] for model in (packed, plain))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("way", ["gptq", "nvfp4", "fp8, blocks"])
def test_part_of_a_quantized_weight_is_the_part_of_the_whole(way, tmp_path):
    weights = Model.load(folders(way, tmp_path)[0]).weights.file
    whole_weight = weights.part("decoder.0.feed_forward.hidden.weight", ...)
    index = (slice(3, 9), slice(1, 5))
    assert np.array_equal(weights.part("decoder.0.feed_forward.hidden.weight", index), whole_weight[index])


def test_experts_of_gpt_oss_in_blocks_are_those_of_the_plain_file(tmp_path):
    plain = load_file(REFERENCES / "gpt_oss" / "model.safetensors")
    stored, wanted = {}, {}
    for name, tensor in plain.items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            stored[name] = wanted[name] = ("F32", tensor)
            continue
        experts, inputs, outputs = tensor.shape
        codes = RNG.integers(0, 16, (experts, outputs, inputs))
        scales = RNG.integers(120, 128, (experts, outputs, inputs // 32)).astype("u1")
        stored[f"{name}_blocks"] = ("U8", pairs(codes).reshape(experts, outputs, inputs // 32, 16))
        stored[f"{name}_scales"] = ("U8", scales)
        numbers = np.array(FOURS, "f4")[codes] * np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=2)
        wanted[name] = ("F32", numbers.transpose(0, 2, 1).astype("f4"))
    weights = []
    for kind, tensors in (("packed", stored), ("plain", wanted)):
        more = {"quantization_config": {"quant_method": "mxfp4"}} if kind == "packed" else {}
        with_settings(tmp_path / kind, "gpt_oss", **more)
        write_raw(tmp_path / kind / "model.safetensors", tensors)
        model = Model.load(tmp_path / kind)
        weights.append({name: model.weights.file.part(name, ...) for name in model.program(2).weights})
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[1])


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quantized by 'bitsandbytes' are not read"),
        ({"quant_method": "gptq", "bits": 3}, "bits 3 is not read: 2, 4, 8 are"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "checkpoint_format 'marlin' is not read"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "version 'gemv' is not read"),
        ({"quant_method": "awq", "bits": 8}, "bits 8 is not read"),
        ({"quant_method": "fp8", "weight_block_size": [0, 4]}, "weight_block_size"),
        (compressed("marlin-24"), "format 'marlin-24' is not read"),
        (compressed("pack-quantized", 3), "num_bits"),
        (compressed("pack-quantized", [4]), "num_bits"),
        (compressed("float-quantized") | {"transform_config": {"config_groups": {"R1": {}}}}, "transform_config"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "quant_algo 'W4A8_AWQ' is not read"),
        ({"quant_method": "gptq", "bits": 4.0}, "bits 4.0 is not read"),
        ("4 bits", "no table of settings"),
    ],
)
def test_what_is_not_read_is_refused_by_name(said, named, tmp_path):
    message = refusal(with_settings(tmp_path / "model", "llama", quantization_config=said))
    assert "config.json" in message
    assert named in message


def test_a_quantized_weight_that_lacks_a_part_is_named(tmp_path):
    folder, _ = folders("gptq", tmp_path)
    reconfigured(folder, quantization_config={"quant_method": "awq", "bits": 4})
    refuses(r"down_proj|gate_proj|q_proj|o_proj|k_proj", lambda: Model.load(folder).trace(ids=IDS).compute())


@pytest.mark.parametrize("group", [0, -2, -128, "128", 8.0, True, None, [8]])
@pytest.mark.parametrize(("method", "key"), [("gptq", "group_size"), ("awq", "group_size"), ("awq", "q_group_size")])
def test_a_size_of_groups_that_is_none_is_refused_by_name(group, method, key, tmp_path):
    said = {"quant_method": method, "bits": 4, key: group}
    with pytest.raises(InputError, match=rf"config\.json: quantization_config: {key} .* is no size"):
        Model.load(with_settings(tmp_path / "model", "llama", quantization_config=said))


@pytest.mark.parametrize("group", [1, 7, 9, 32, 1 << 40, -1, "unsaid"])
@pytest.mark.parametrize("way", ["gptq", "gptq, in any order", "awq"])
def test_a_size_of_groups_other_than_that_of_the_scales_is_refused(group, way, tmp_path):
    folder, _ = folders(way, tmp_path)
    said = WAYS[way][0] | {"group_size": group}
    if group == "unsaid":
        del said["group_size"]
    reconfigured(folder, quantization_config=said)
    if way == "awq" and group == "unsaid":
        assert Model.load(folder)
        return
    refuses(r"_proj.*: its .*group_size", lambda: Model.load(folder))


def test_one_group_of_all_inputs_is_read_as_such():
    tensors = {".qweight": (8, 16), ".qzeros": (1, 2), ".scales": (1, 16)}
    numbers = {
        end: RNG.integers(-9, 9, shape).astype("i4") if end != ".scales" else np.ones(shape, "f4")
        for end, shape in tensors.items()
    }
    one, same = gptq(4, -1, less_one=True), gptq(4, 64, less_one=True)
    assert one.shape(tensors) == same.shape(tensors) == (16, 64)
    assert np.array_equal(one.numbers(numbers), same.numbers(numbers))
    assert np.array_equal(one.numbers(numbers), gptq(4, None, less_one=True).numbers(numbers))


@pytest.mark.parametrize("wrong", [-1, 1 << 20])
def test_an_input_of_no_group_is_refused(wrong, tmp_path):
    folder, _ = folders("gptq, in any order", tmp_path)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["model.layers.0.self_attn.q_proj.g_idx"][0] = wrong
    save_file(tensors, path)
    refuses(r"q_proj.*: its g_idx names groups", lambda: Model.load(folder).trace(ids=IDS).compute())


def test_groups_of_other_tensors_are_refused_in_words():
    for end, shape in (
        (".scales", (3, 16)),
        (".scales", (4, 15)),
        (".scales", (4,)),
        (".qzeros", (3, 2)),
        (".g_idx", (31,)),
    ):
        shapes = {".qweight": (4, 16), ".qzeros": (4, 2), ".scales": (4, 16), ".g_idx": (32,)}
        assert gptq(4, 8, less_one=True).shape(shapes) == (16, 32)
        with pytest.raises(MisfitError, match=r"scales are|zeros are|g_idx is"):
            gptq(4, 8, less_one=True).shape(shapes | {end: shape})
    with pytest.raises(MisfitError, match="no whole groups"):
        awq(12).shape({".qweight": (32, 2), ".qzeros": (3, 2), ".scales": (3, 16)})


@pytest.mark.parametrize(("group", "fits"), [(16, True), (15, False), (8, False), (-1, False)])
def test_groups_of_packed_integers_have_the_size_that_is_said(group, fits, tmp_path):
    folder, _ = folders("integers", tmp_path)
    weights = {"num_bits": 4, "strategy": "group", "group_size": group}
    said = compressed("pack-quantized") | {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    reconfigured(folder, quantization_config=said)
    if fits:
        assert Model.load(folder)
        return
    refuses(r"_proj.*: its scales are .* group_size is", lambda: Model.load(folder))


@COUNTS
@pytest.mark.parametrize("way", ["fp8, blocks", "nvfp4", "gptq, in any order", "awq", "integers, zeros"])
def test_broken_quantized_checkpoints(tmp_path, way, count):
    folder, _ = folders(way, tmp_path)
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    few = {name: entry for name, entry in header.items() if "layers.0.self_attn.q_proj" in name}

    def check(entries: Any, said: Any) -> None:
        text = json.dumps(header | (entries if isinstance(entries, dict) else {})).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
        reconfigured(folder, quantization_config=said)
        read_or_refused(lambda: Model.load(folder).trace(ids=[1, 2]).compute(), path, folder / "config.json")

    hold(count, check, entries=changed(few), said=changed(WAYS[way][0]))
