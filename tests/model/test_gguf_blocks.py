"""Blocks of GGUF files: their numbers, a part of them, and the code and scale that a weight is made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

from tui_transformer.engine import compact, weights
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.compact import StoredMatrix
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.gguf_file import read_gguf
from tui_transformer.model import Model
from tui_transformer.model.gguf.blocks import FORMATS
from tui_transformer.model.gguf.tensors import KINDS, open_gguf

gguf = pytest.importorskip("gguf")
from gguf_files import finish, write_gguf  # noqa: E402 - needs the library

IDS = [5, 9, 2, 7, 11, 3]
DEQUANTIZED = [kind for kind in KINDS.values() if kind.name not in ("F32", "F64")]


@pytest.mark.parametrize("kind", DEQUANTIZED, ids=lambda kind: kind.name)
def test_blocks_of_any_bytes_are_what_the_library_makes_of_them(kind, tmp_path):
    data = np.random.default_rng(5).integers(0, 256, (8, 2 * kind.bytes), np.uint8)
    typed = gguf.GGMLQuantizationType[kind.name]
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(data, typed)
    tensor = one_tensor(tmp_path / "m.gguf", data, typed)
    finite = np.flatnonzero(np.isfinite(wanted).all(axis=1))
    assert len(finite)
    for row in finite:
        assert np.array_equal(tensor.read("x", lambda whole, row=row: whole[row]), wanted[row])
    if len(finite) < len(wanted):
        refuses("NaN or infinity", lambda: tensor.read("x", np.asarray))


def one_tensor(path: Path, data: np.ndarray, kind):
    """The tensors of a file with one, of these bytes."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("x", data, raw_dtype=kind)
    finish(writer)
    return open_gguf(read_gguf(path), lambda name, _: (name, None))


def test_types_that_are_no_numbers_here_are_named_and_sizes_of_blocks_those_of_the_library(tmp_path):
    for name in ("Q8_1", "Q8_K", "I32", "Q1_0"):
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        with pytest.raises(InputError, match=f"tensor x is stored as type {name} of ggml: only F32, F16"):
            one_tensor(tmp_path / "m.gguf", np.zeros((2, size), np.uint8), kind)
    for number, kind in KINDS.items():
        named = gguf.GGMLQuantizationType(number)
        assert (named.name, gguf.GGML_QUANT_SIZES[named]) == (kind.name, (kind.numbers, kind.bytes))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_cell_of_blocks_is_its_code_times_the_scale(kind, tmp_path):
    blocks = next(each for each in KINDS.values() if each.name == kind)
    data = np.random.default_rng(6).integers(0, 100, (4, 3 * blocks.bytes), np.uint8)
    tensors = one_tensor(tmp_path / "m.gguf", data, gguf.GGMLQuantizationType[kind])
    numbers = tensors.read("x", np.asarray)
    for row, column in ((0, 0), (1, blocks.numbers + 7), (3, 3 * blocks.numbers - 1)):
        cell = (slice(row, row + 1), slice(column, column + 1))
        rounded = tensors.find("x").rounded("tensor x", lambda whole, cell=cell: whole[cell])
        _, working = rounded.explained()
        values = {item.symbol: item.value for item in working.items}
        assert working.result == pytest.approx(float(numbers[row, column]), rel=1e-6, abs=1e-12)
        group = numbers[row].reshape(-1, len(rounded.codes))[column // len(rounded.codes)]
        assert [rounded.number(code) for code in rounded.codes] == pytest.approx(group.tolist(), rel=1e-6, abs=1e-12)
        assert values["rounded from"] <= working.result <= values["up to"]
        assert rounded.ends[0] <= values["code"] <= rounded.ends[1]


@pytest.mark.parametrize("family", ["llama", "qwen2_moe", "cohere", "gpt2"])
def test_a_weight_is_explained_by_its_block_wherever_the_file_has_it(family, tmp_path):
    model = Model.load(write_gguf(tmp_path / "m.gguf", family, "Q4_1"))
    trace = model.trace(ids=IDS)
    for name, axes in model.program(3).weights.items():
        index = tuple(axis.size - 1 for axis in axes)
        explained = trace.explain_cell(name, index)
        assert explained.recomputed == pytest.approx(explained.stored, rel=1e-6)
        in_blocks = model.weights.explain(name, index) is not None
        assert (explained.formula != "given") == (" · " in explained.equation) == in_blocks, name
    assert trace.explain_cell("decoder.0.self_attention.norm.weight", (1,)).formula == "given"
    assert trace.explain_cell("decoder.0.self_attention.output.weight", (1, 2)).formula == "scale · code + minimum"


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0"])
def test_part_of_a_weight_is_the_part_of_the_whole(kind, tmp_path):
    weights = Model.load(write_gguf(tmp_path / "m.gguf", "llama", kind)).weights.file
    for name in ("embedding.tokens", "decoder.0.feed_forward.hidden", "decoder.0.self_attention.key"):
        whole = weights.part(f"{name}.weight", ...)
        for index in ((slice(3, 9), slice(1, 5)), (slice(2, 3), slice(None)), (slice(0, 0), slice(None))):
            assert np.array_equal(weights.part(f"{name}.weight", index), whole[index])
        rows = np.array([0, 3, 4, 7])
        assert np.array_equal(weights.part(f"{name}.weight", rows), whole[rows])


@pytest.fixture(params=["llama", "gpt2", "qwen2_moe", "phi3"], ids=["ordered", "turned", "experts", "side_by_side"])
def both(request, tmp_path) -> tuple[Model, Model]:
    """A model whose matrices are made where products read them, and the same with all that is read held."""
    model = Model.load(write_gguf(tmp_path / "m.gguf", request.param, "Q4_1"), device="cpu")
    return model, replace(model, weights=replace(model.weights, held={}, packed=lambda _: False))


def test_matrices_in_blocks_are_made_where_products_read_them_with_the_gradients_of_those_that_are_held(both):
    packed, held = (model.trace(ids=IDS) for model in both)
    matrices = {name for name in packed.program.weights if packed.weights.packed(name)}
    assert len(matrices) >= 10
    for step in packed.program.steps:
        np.testing.assert_allclose(packed[step.name], held[step.name], rtol=1e-5, atol=1e-6)
    assert not matrices.isdisjoint(held.weights.held)
    part = (range(1, 4), range(2, 9))
    for name in matrices:
        assert np.array_equal(packed.window(name, part), held.window(name, part))
    packed, held = (gradients(model.trace(ids=IDS), [*IDS[1:], -1]) for model in both)
    assert packed.values.keys() == held.values.keys()
    for name, gradient in packed.values.items():
        np.testing.assert_allclose(gradient, held.values[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("rows", [1, 10, compact.FEW, compact.FEW + 1])
@pytest.mark.parametrize(("inner", "columns", "panel"), [(96, 330, 64), (2848, 70, 16), (7, 100, 33), (64, 5, 16)])
def test_cores_that_share_the_panels_of_a_matrix_give_its_product(rows, inner, columns, panel, monkeypatch):
    monkeypatch.setattr(compact, "cores", lambda: 2)
    random, starts = np.random.default_rng(rows), []
    cells = random.standard_normal((inner, columns + 3))
    x = random.standard_normal((rows, inner))

    def read(index):
        starts.append(index[1].start)
        return cells[index]

    matrix = StoredMatrix(read, range(inner), range(2, columns + 2), panel)
    np.testing.assert_allclose(matrix.product(numpy_backend("float64"), x), x @ cells[:, 2:-1], rtol=1e-11, atol=1e-11)
    assert sorted(starts) == list(range(2, columns + 2, panel))


def test_what_is_wrong_with_a_panel_that_another_core_reads_is_said(monkeypatch):
    monkeypatch.setattr(compact, "cores", lambda: 2)

    def read(index):
        if index[1].start >= 16:
            raise InputError("m.gguf: was cut")
        return np.ones((4, 16), np.float32)

    with pytest.raises(InputError, match="was cut"):
        StoredMatrix(read, range(4), range(256), 16).product(numpy_backend(), np.ones((2, 4), np.float32))


def test_matrices_in_blocks_are_held_when_they_are_read_again_and_memory_is_free(both, monkeypatch):
    model, _ = both
    matrices = {name for name in model.program(3).weights if model.weights.packed(name)}
    model.trace(ids=IDS, budget=0).compute()
    assert matrices.isdisjoint(model.weights.held)
    monkeypatch.setattr(weights, "available_memory", lambda: 1 << 14)
    model.trace(ids=IDS, budget=0).compute()
    assert matrices.isdisjoint(model.weights.held)
    monkeypatch.undo()
    model.trace(ids=IDS, budget=0).compute()
    assert not matrices.isdisjoint(model.weights.held)
    model.weights.let_go()
    assert not model.weights.held
    model.trace(ids=IDS, budget=0).compute()
    assert matrices.isdisjoint(model.weights.held)


def test_a_matrix_in_blocks_can_be_edited_and_written_on_with(both):
    name = next(name for name in both[0].program(3).weights if both[0].weights.packed(name))
    edits, settings = [Edit(name, (0, 1), 3.0)], Settings(greedy=True, max_new_tokens=4)
    writers = [Writer(model, settings, Rules(), edits=edits) for model in both]
    written = [[state.ids for state in writer.run(writer.begin(IDS))] for writer in writers]
    assert len(written[0][-1]) == len(IDS) + 4
    assert written[0] == written[1]
    traces = [model.trace(ids=IDS).edited(edits) for model in both]
    logits = traces[0].program.logits
    np.testing.assert_allclose(traces[0][logits], traces[1][logits], rtol=1e-5, atol=1e-6)


def test_a_scale_that_is_no_number_is_named_by_the_first_product_that_reads_it(tmp_path):
    path = write_gguf(tmp_path / "m.gguf", "llama", "Q8_0")
    start = read_gguf(path).tensors["blk.0.ffn_up.weight"].start
    data = bytearray(path.read_bytes())
    data[start : start + 2] = np.array([np.inf], "<f2").tobytes()
    path.write_bytes(data)
    refuses(r"up_proj.* holds NaN or infinity", lambda: Model.load(path).trace(ids=IDS).compute())
