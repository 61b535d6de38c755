"""Keys and values that are kept: in traces, and in the steps of one token."""

from __future__ import annotations

import dataclasses
import weakref

import numpy as np
import pytest
from reference import REFERENCES, in_float64, with_settings
from refusing import refuses
from strict import strict_backend

from tui_transformer.engine import weights
from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Backend, choose_backend, find_gpu, numpy_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights, side_by_side
from tui_transformer.generation.cache import Cache, Rooms, kept_steps, last_logits, products_of_one, writes
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import State, Writer
from tui_transformer.model import Model

# Keys and values that are kept give what computing everything again gives
ONE_SEQUENCE = (
    *("vanilla-decoder", "gpt2", "gpt_neox", "llama", "qwen2", "qwen3"),
    *("gemma", "gemma2", "gemma3", "olmo2", "olmo3", "smollm3", "phi3", "granite", "starcoder2"),
    *("phi", "stablelm", "cohere", "falcon", "bloom", "opt"),
    *("gpt_neo", "ministral", "seed_oss", "cohere2", "exaone4", "ernie4_5", "helium"),
    *("arcee", "nemotron", "glm", "glm4", "cwm", "gpt_bigcode", "gptj"),
    *("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss"),
)
TWO_SEQUENCES = ("vanilla-encoder-decoder", "bart", "marian", "mbart", "m2m_100", "pegasus", "t5", "umt5")
LENGTHS = (4, 5, 6, 8, 9)
"""Tokens that are there after each pass: several at first, then one or two at a time."""


@dataclasses.dataclass(frozen=True)
class Passed:
    """A model, two sentences that grow, two sources; passes with a cache: their traces, logits and the cache after."""

    model: Model
    grown: np.ndarray
    source: np.ndarray
    passes: list = dataclasses.field(default_factory=list)

    def trace(self, cache: Cache, length: int) -> Trace:
        grown = self.grown[:, :length]
        ids = (self.source, grown) if self.model.has_decoder else (grown,)
        return self.model.trace_after(cache.arrays, cache.length, *ids, budget=0)


@pytest.fixture(scope="module", params=[*ONE_SEQUENCE, *TWO_SEQUENCES])
def passed(request) -> Passed:
    model, rng = in_float64(request.param), np.random.default_rng(0)
    made = Passed(model, *(rng.integers(4, model.config.vocab_size, (2, size)) for size in (LENGTHS[-1], 7)))
    cache = Cache()
    for length in LENGTHS:
        trace = made.trace(cache, length)
        kept = kept_steps(trace.program)
        logits, *arrays = trace.arrays(["output.logits", *kept.values()])
        cache = Cache(dict(zip(kept, arrays, strict=True)), length)
        made.passes.append((trace, logits, cache))
    return made


def test_logits_are_those_of_a_pass_over_everything(passed):
    expected = passed.trace(Cache(), LENGTHS[-1]).array("output.logits")
    for (_, logits, _), length in zip(passed.passes, LENGTHS, strict=True):
        np.testing.assert_allclose(logits, expected[:, length - logits.shape[1] : length], rtol=1e-10, atol=1e-12)


def test_one_can_go_back_in_a_cache(passed):
    (_, _, short), (_, _, long) = passed.passes[1], passed.passes[-1]
    again, expected = (
        passed.trace(cache, LENGTHS[2]).array("output.logits") for cache in (long.cut(LENGTHS[1]), short)
    )
    np.testing.assert_allclose(again, expected, rtol=1e-12)
    assert short.cut(0).arrays == {}


def test_later_passes_compute_new_rows_only_in_memory_that_is_known_before(passed):
    for trace, _, cache in passed.passes:
        shapes = {name: trace.program.shape(step) for name, step in kept_steps(trace.program).items()}
        assert {name: array.shape[1:] for name, array in cache.arrays.items()} == shapes
        assert cache.bytes == 2 * 8 * sum(map(np.prod, shapes.values()))
    stack = passed.passes[1][0].program
    assert not any(step.name.startswith("encoder.") for step in stack.steps)
    assert stack.shape("decoder.0.self_attention.query")[1] == 1
    assert stack.shape("decoder.0.self_attention.key_cached")[1] == LENGTHS[1]
    assert stack.shape("decoder.0.self_attention.weights")[1:] == (1, LENGTHS[1])


def test_cells_of_a_cached_pass_are_explained(passed):
    trace, *_ = passed.passes[-1]
    for step in trace.program.steps:
        index = tuple(size - 1 for size in step.shape)
        explanation = trace.explain_cell(step.name, index, item=1)
        assert explanation.recomputed == pytest.approx(explanation.stored, rel=1e-9, abs=1e-12), step.name


def test_an_encoder_does_not_write():
    refuses("does not write", lambda: kept_steps(Model.load(REFERENCES / "bert").program(3)))


@pytest.mark.parametrize("folder", ["bart", "opt", "t5", "bart-answers"])
def test_a_decoder_with_logits_for_labels_does_not_write(folder: str) -> None:
    model = Model.load(REFERENCES.parent / "classifiers" / folder)
    assert not writes(model.trace(ids=[5, 6, 7]).program)


@pytest.mark.parametrize("left", [True, False])
def test_rows_after_kept_ones_are_those_of_the_whole_under_the_same_mask(left):
    model = in_float64("llama")
    ids = [[3, 3, 7, 9, 12, 5], [4, 33, 21, 8, 6, 10]]
    mask = np.array([[0, 0, 1, 1, 1, 1] if left else [1, 1, 0, 1, 1, 1], [1] * 6])
    whole = model.trace(ids=ids, mask=mask)
    _, kept = last_logits(model.trace_after({}, 0, [row[:4] for row in ids], mask=mask[:, :4], budget=0))
    after = model.trace_after(kept, 4, ids, mask=mask)
    np.testing.assert_allclose(after["output.logits"], whole["output.logits"][:, 4:], atol=1e-12)


# A pass of one token does no more than it has to
def test_a_mask_that_hides_nothing_is_not_made_and_one_that_hides_padding_is(monkeypatch) -> None:
    settings, bart = Settings(greedy=True, max_new_tokens=3), Model.load(REFERENCES / "bart")
    plain = Writer(Model.load(REFERENCES / "gpt2"), settings)
    padded = Writer(bart, settings, source=(7, 9, 12, 33), mask=(1, 1, 1, 0))
    begun = plain.begin((4, 5, 6)), padded.begin([bart.config.start_id or 0])
    made, forward = [], Mask.forward
    monkeypatch.setattr(Mask, "forward", lambda op, *given, **more: made.append(op) or forward(op, *given, **more))
    plain.next(begun[0])
    assert not made
    padded.next(begun[1])
    assert made


@pytest.mark.parametrize(("name", "groups", "turned"), [("gpt2", 1, False), ("llama", 2, True), ("bart", 1, True)])
def test_weights_that_multiply_one_input_are_read_side_by_side_and_multiplied_at_once(name, groups, turned) -> None:
    settings, held = Settings(greedy=True, max_new_tokens=5), in_float64(name)
    source, steps, seen = (7, 9, 12, 33) if held.has_decoder else (), set(), []
    for weight, axes in held.program(1, 1).weights.items():
        held.weights.get(weight, shape_of(axes))
    model = in_float64(name)
    writers = [Writer(each, settings, Rules(), source) for each in (model, held)]
    one, other = (list(each.run(each.begin((4, 5) if not source else (4,)))) for each in writers)
    assert [state.ids for state in one] == [state.ids for state in other]
    for state, same in zip(one, other, strict=True):
        np.testing.assert_allclose(state.logits, same.logits, rtol=1e-10, atol=1e-12)
    joint, apart = (each._step for each in writers)
    assert len(joint.lines) - len(apart.lines) == groups * 2  # layers
    for group in products_of_one(model.program(1, 1)):
        parts = [model.weights.held[step.inputs[1]] for step in group]
        steps.update(step.name for step in group)
        assert {part.flags.f_contiguous for part in parts} == {turned}
        whole = side_by_side(parts)
        assert whole is not None
        assert side_by_side(parts[::-1]) is None
        assert np.array_equal(whole, np.concatenate(parts, axis=1))
        assert side_by_side([held.weights.held[step.inputs[1]] for step in group]) is None
    writers[0].next(one[2], before=lambda step: seen.append(step.name))
    assert steps & set(seen) == steps & {line.step.name for line in apart.lines}


def test_of_weights_side_by_side_one_can_be_edited_let_go_and_read_again() -> None:
    model, settings = in_float64("llama"), Settings(greedy=True, max_new_tokens=4)
    name = "decoder.0.self_attention.key.weight"
    edits = [Edit(name, (1, 2), 3.0)]
    written = Writer(model, settings, Rules(), edits=edits)
    plain = Writer(in_float64("llama"), dataclasses.replace(settings, use_cache=False), Rules(), edits=edits)
    for _ in range(2):
        for state, same in zip(written.run(written.begin((4, 5))), plain.run(plain.begin((4, 5))), strict=True):
            np.testing.assert_allclose(state.logits, same.logits, rtol=1e-10, atol=1e-12)
        model.weights.let_go()
        assert not model.weights.held
        written = Writer(model, settings, Rules(), edits=edits)


@pytest.mark.parametrize("read", [1, 3])
def test_weights_side_by_side_give_their_memory_back_where_it_is_short(read: int, monkeypatch) -> None:
    model = in_float64("llama")
    group, *_ = (tuple(step.inputs[1] for step in group) for group in products_of_one(model.program(1)))
    shapes = {name: shape_of(model.program(1).weights[name]) for name in group}
    most = max(8 * np.prod(shape) for shape in shapes.values())
    assert len({*shapes.values()}) == 2, "key and value are less than what memory is asked for"
    model = dataclasses.replace(model, weights=dataclasses.replace(model.weights, small=int(most)))
    Writer(model, SETTINGS, Rules())
    for name in group[:read]:
        model.weights.get(name, shapes[name])
    piece = weakref.ref(model.weights.held[group[0]].base)
    monkeypatch.setattr(weights, "available_memory", lambda: 0)
    model.weights.get("decoder.1.self_attention.query.weight", shapes[group[0]])
    assert piece() is None
    monkeypatch.undo()
    assert side_by_side([model.weights.get(name, shape) for name, shape in shapes.items()]) is not None


def test_arrays_that_grow_together_lie_in_one_piece() -> None:
    rooms, new = Rooms(numpy_backend(), 64, alike=2), np.ones((1, 2, 1, 3), np.float32)
    kept = {name: rooms.extended(name, np.zeros((1, 2, 4, 3), np.float32), new) for name in ("key", "value")}
    first, second = (rooms.rooms[name].memory for name in kept)
    assert first.base is second.base is not None
    longer = rooms.extended("key", kept["key"], 2 * new)
    assert np.shares_memory(longer, kept["key"])
    np.testing.assert_array_equal(longer[0, 0, :, 0], [0, 0, 0, 0, 1, 2])
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("family", ["llama", "bart"])
def test_no_more_memory_is_taken_than_what_grows_takes(family: str) -> None:
    model = Model.load(REFERENCES / family, device="cpu")
    writer = Writer(model, SETTINGS, Rules(), (7, 9, 12) if model.has_decoder else ())
    writer.next(writer.begin((4, 5)))
    (piece,) = {id(room.memory.base): room.memory.base for room in writer._rooms.rooms.values()}.values()
    assert piece.nbytes == sum(room.memory.nbytes for room in writer._rooms.rooms.values())


# Padding of a prompt or a source is read as what it is
SETTINGS = Settings(max_new_tokens=4)


def test_padding_of_a_prompt_is_left_out_by_a_mask_and_by_the_pad_id(tmp_path):
    model = in_float64(with_settings(tmp_path, "llama", pad_token_id=2))
    writer = Writer(model, SETTINGS, Rules())
    assert writer.unpadded([3, 3, 7, 9], [0, 0, 1, 1]) == (7, 9)
    assert writer.unpadded([2, 2, 7, 2, 9]) == (7, 2, 9)
    assert writer.unpadded([7, 9]) == (7, 9)
    # one that ends texts too is read
    assert Writer(model, SETTINGS, Rules(stop_ids=(2,))).unpadded([2, 7, 9]) == (2, 7, 9)


@pytest.mark.parametrize("name", ["bart", "t5", "marian"])
def test_a_source_under_a_mask_is_the_source_alone(name):
    model = in_float64(name)
    start = [model.config.start_id or 0]
    texts = []
    for source, mask in (([7, 9, 12], None), ([7, 9, 12, 33, 34], [1, 1, 1, 0, 0])):
        writer = Writer(model, SETTINGS, Rules(), source, mask)
        *_, last = writer.run(writer.begin(start))
        texts.append(last.written)
    assert texts[0] == texts[1]


def test_a_mask_that_does_not_fit_is_refused():
    model = Model.load(REFERENCES / "bart", device="cpu")
    refuses("1 × 2, for 1 × 3 tokens", lambda: Writer(model, SETTINGS, Rules(), [7, 9, 12], [1, 1]))
    writer = Writer(Model.load(REFERENCES / "llama", device="cpu"), SETTINGS, Rules())
    refuses("a row of it has no 1", lambda: writer.unpadded([7, 9], [0, 0]))


# On another device the same is written: on a stand-in whose arrays never mix with the host's, and on a GPU
GPU = find_gpu()
FAMILIES = ("gpt2", "qwen3", "bart", "t5")


def texts(model: Model) -> list[State]:
    """A text, and another one from its middle."""
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8), Rules(), (5, 6, 7) if model.has_decoder else ())
    first = list(writer.run(writer.begin((5, 6))))
    return [*first, *writer.run(writer.next(first[2], 9))]


def assert_same(family: str, backend: Backend, tolerance: float) -> None:
    model = Model.load(REFERENCES / family, device="cpu", dtype=str(backend.dtype))
    there = dataclasses.replace(model, weights=Weights(backend, model.weights.read))
    for text, wanted in zip(texts(there), texts(model), strict=True):
        assert text.ids == wanted.ids
        np.testing.assert_allclose(text.logits, wanted.logits, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_host_and_device_are_kept_apart(family: str) -> None:
    assert_same(family, strict_backend(), 1e-12)


@pytest.mark.gpu
@pytest.mark.skipif(GPU.cupy is None, reason=GPU.finding)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_writes_what_the_cpu_writes(family: str) -> None:
    assert_same(family, choose_backend("gpu"), 1e-4)
