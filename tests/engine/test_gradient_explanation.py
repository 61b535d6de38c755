"""One cell of a gradient, written out by the chain rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from comparing import operands
from reference import REFERENCES

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.explanation import Sum
from tui_transformer.engine.gradient import Gradients, gradients
from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient, has_gradient
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops import Op, Relu
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS, TARGETS = [2, 5, 3, 6, 4], [5, -1, 6, 4, 7]
SIZES = {"d_model": 8, "heads": 2, "d_ff": 6, "max_length": 8, "layers": 1}
CASES = {
    "encoder": SIZES,
    "decoder": SIZES | {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True},
    "encoder-decoder": SIZES | {"scale_embedding": True, "bias": True},
}


def traced(name: str, dtype: str = "float64") -> Trace:
    model = Model.load(name, device="cpu", dtype=dtype, **CASES[name])
    return model.trace(ids=IDS[:4], decoder_ids=IDS) if model.has_decoder else model.trace(ids=IDS)


def some_cells(computed: Gradients, name: str, count: int = 3) -> Iterator[tuple[int, ...]]:
    """The cell with the largest gradient, and a few others."""
    array = np.abs(computed.values[name]).ravel()
    rng = np.random.default_rng(3)
    for flat in {int(array.argmax()), *rng.integers(0, array.size, count).tolist()}:
        yield tuple(int(i) for i in np.unravel_index(flat, computed.values[name].shape))


@pytest.mark.parametrize("name", CASES)
def test_the_terms_give_the_cell_of_every_gradient_and_operands_hold_what_their_cells_hold(name):
    trace = traced(name)
    computed = gradients(trace, TARGETS)
    assert set(has_gradient(trace)) == set(computed.values)
    assert has_gradient(trace)[0] == "output.logits"
    known = {f"{GRADIENT}{each}": array for each, array in computed.values.items()}
    for each in computed.values:
        for index in some_cells(computed, each):
            explained = explain_gradient(trace, computed, TARGETS, each, index)
            assert explained.stored == computed.values[each][index]
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9, abs=1e-12), (each, index)
            assert explained.formula
            assert explained.name == f"{GRADIENT}{each}"
        for operand in (operand for item in explained.items for operand in operands(item)):
            cell = tuple(range(i, i + 1) for i in operand.index)
            own = operand.name in known
            value = known[operand.name][operand.index] if own else trace.window(operand.name, cell).item()
            assert operand.value == value, (each, operand)


def test_the_residual_stream_collects_a_term_from_every_reader_and_the_logits_a_share_less_the_target():
    trace = traced("decoder")
    computed = gradients(trace, TARGETS)
    explained = explain_gradient(trace, computed, TARGETS, "embedding.output", (1, 2))
    notes = [item.note for item in explained.items if not isinstance(item, Sum) and item.symbol == "+"]
    assert [note.partition(":")[0].removeprefix("via ") for note in notes] == [
        "decoder.0.self_attention.norm",
        "decoder.0.self_attention.residual",
    ]
    terms = [item.value for item in explained.items if not isinstance(item, Sum) and item.symbol == "+"]
    assert explained.equation == f"{spoken(terms[0])} + {bracketed(terms[1])} = {spoken(explained.recomputed)}"
    row = next(place for place, target in enumerate(TARGETS) if target >= 0)
    explained = explain_gradient(trace, computed, TARGETS, trace.program.logits, (row, TARGETS[row]))
    count = sum(target >= 0 for target in TARGETS)
    share = explained.recomputed * count + 1
    assert explained.equation == f"({spoken(share)} − 1) ÷ {count} = {spoken(explained.recomputed)}"


def test_a_weight_collects_the_gradients_of_all_sentences():
    model = Model.load("decoder", device="cpu", dtype="float64", **CASES["decoder"])
    trace = model.trace(ids=[IDS, IDS[::-1]])
    targets = [TARGETS, TARGETS]
    computed = gradients(trace, targets)
    name = "decoder.0.feed_forward.hidden.weight"
    explained = explain_gradient(trace, computed, TARGETS, name, (1, 2))
    assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9)
    second = explain_gradient(trace, computed, TARGETS, "decoder.0.feed_forward.hidden", (1, 2), item=1)
    assert second.recomputed == pytest.approx(computed.values["decoder.0.feed_forward.hidden"][1, 1, 2], rel=1e-9)


@pytest.mark.parametrize("step", ["self_attention.weights", "feed_forward.hidden"])
def test_a_cell_set_by_hand_passes_nothing_on(step):
    name = f"decoder.0.{step}"
    trace = traced("decoder")
    index = (0,) * len(trace.program.shape(name))
    trace = trace.edited([Edit(name, index, 0.25)])
    computed = gradients(trace, TARGETS)
    for source in (name, *trace.program.step(name).inputs):
        for place in {index[: computed.values[source].ndim], *some_cells(computed, source)}:
            explained = explain_gradient(trace, computed, TARGETS, source, place)
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9, abs=1e-12)


def test_an_operation_that_writes_no_terms_is_explained_by_its_backward_pass(monkeypatch):
    monkeypatch.setattr(Relu, "explain_backward", Op.explain_backward)
    trace = traced("encoder")
    computed = gradients(trace, TARGETS)
    for index in some_cells(computed, "encoder.0.feed_forward.hidden"):
        explained = explain_gradient(trace, computed, TARGETS, "encoder.0.feed_forward.hidden", index)
        assert explained.recomputed == pytest.approx(explained.stored, rel=1e-12)


def test_float32_gradients_are_explained_near_what_is_held():
    trace = traced("encoder", "float32")
    computed = gradients(trace, TARGETS)
    for name, array in computed.values.items():
        explained = explain_gradient(trace, computed, TARGETS, name, next(some_cells(computed, name)))
        assert abs(explained.difference) <= 1e-5 * max(float(np.abs(array).max()), 1e-3), name


def test_what_has_no_gradient_is_said():
    for name, index, said in (
        ("tokens", (0,), "tokens has no gradient"),
        ("output.probabilities", (0, 0), "output.probabilities has no gradient"),
        ("output.logits", (9, 0), r"output.logits has no cell \[9, 0\]"),
    ):
        trace = traced("encoder")
        with pytest.raises(InputError, match=said):
            explain_gradient(trace, gradients(trace, TARGETS), TARGETS, name, index)
    assert has_gradient(Model.load("attention").trace()) == ()


@pytest.mark.parametrize("folder", sorted(REFERENCES.iterdir()), ids=lambda folder: folder.name)
def test_the_gradients_of_every_family_are_explained(folder):
    model = Model.load(folder, device="cpu", dtype="float64")
    trace = model.trace(ids=[1, 4, 2, 5], **({"decoder_ids": [0, 3, 5]} if model.has_decoder else {}))
    targets = [3, -1, 2, 4][: trace.program.shape("output.logits")[0]]
    computed = gradients(trace, [targets])
    assert set(computed.values) == set(has_gradient(trace)) >= set(trace.program.weights)
    for name in computed.values:
        explained = explain_gradient(trace, computed, targets, name, next(some_cells(computed, name)))
        assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9, abs=1e-12), name
