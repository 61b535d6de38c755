"""Keys and values that are kept give what computing everything again gives."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.generation.cache import Cache, kept_steps, last_logits
from tui_transformer.model import Model

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


@pytest.fixture(params=[*ONE_SEQUENCE, *TWO_SEQUENCES])
def model(request) -> Model:
    return Model.load(REFERENCES / request.param, dtype="float64")


def sentences(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Two sentences that grow, and two sources."""
    rng = np.random.default_rng(0)
    grown, source = (rng.integers(4, model.config.vocab_size, (2, size)) for size in (LENGTHS[-1], 7))
    return grown, source


def trace_of(model: Model, cache: Cache, grown: np.ndarray, source: np.ndarray):
    ids = (source, grown) if model.has_decoder else (grown,)
    return model.trace_after(cache.arrays, cache.length, *ids, budget=0)


def run(model: Model):
    """Passes with a cache: their traces, logits and the cache after them."""
    grown, source = sentences(model)
    cache = Cache()
    for length in LENGTHS:
        trace = trace_of(model, cache, grown[:, :length], source)
        kept = kept_steps(trace.program)
        logits, *arrays = trace.arrays(["output.logits", *kept.values()])
        cache = Cache(dict(zip(kept, arrays, strict=True)), length)
        yield trace, logits, cache


def test_logits_are_those_of_a_pass_over_everything(model):
    grown, source = sentences(model)
    expected = trace_of(model, Cache(), grown, source).array("output.logits")
    for (_, logits, _), length in zip(run(model), LENGTHS, strict=True):
        np.testing.assert_allclose(logits, expected[:, length - logits.shape[1] : length], rtol=1e-10, atol=1e-12)


def test_one_can_go_back_in_a_cache(model):
    grown, source = sentences(model)
    caches = [cache for _, _, cache in run(model)]
    short, long = caches[1], caches[-1].cut(LENGTHS[1])
    again = trace_of(model, long, grown[:, : LENGTHS[2]], source).array("output.logits")
    expected = trace_of(model, short, grown[:, : LENGTHS[2]], source).array("output.logits")
    np.testing.assert_allclose(again, expected, rtol=1e-12)
    assert caches[1].cut(0).arrays == {}


def test_memory_is_known_before_it_is_taken(model):
    for trace, _, cache in run(model):
        shapes = {name: trace.program.shape(step) for name, step in kept_steps(trace.program).items()}
        assert {name: array.shape[1:] for name, array in cache.arrays.items()} == shapes
        assert cache.bytes == 2 * 8 * sum(map(np.prod, shapes.values()))


def test_later_passes_compute_new_rows_only(model):
    traces = [trace for trace, _, _ in run(model)]
    stack = traces[1].program
    assert not any(step.name.startswith("encoder.") for step in stack.steps)
    assert stack.shape("decoder.0.self_attention.query")[1] == 1
    assert stack.shape("decoder.0.self_attention.key_cached")[1] == LENGTHS[1]
    assert stack.shape("decoder.0.self_attention.weights")[1:] == (1, LENGTHS[1])


def test_cells_of_a_cached_pass_are_explained(model):
    *_, (trace, _, _) = run(model)
    for step in trace.program.steps:
        index = tuple(size - 1 for size in step.shape)
        explanation = trace.explain_cell(step.name, index, item=1)
        assert explanation.recomputed == pytest.approx(explanation.stored, rel=1e-9, abs=1e-12), step.name


def test_an_encoder_does_not_write():
    model = Model.load(REFERENCES / "bert")
    with pytest.raises(InputError, match="does not write"):
        kept_steps(model.program(3))


@pytest.mark.parametrize("left", [True, False])
def test_rows_after_kept_ones_are_those_of_the_whole_under_the_same_mask(left):
    model = Model.load(REFERENCES / "llama", device="cpu", dtype="float64")
    ids = [[3, 3, 7, 9, 12, 5], [4, 33, 21, 8, 6, 10]]
    mask = np.array([[0, 0, 1, 1, 1, 1] if left else [1, 1, 0, 1, 1, 1], [1] * 6])
    whole = model.trace(ids=ids, mask=mask)
    _, kept = last_logits(model.trace_after({}, 0, [row[:4] for row in ids], mask=mask[:, :4], budget=0))
    after = model.trace_after(kept, 4, ids, mask=mask)
    np.testing.assert_allclose(after["output.logits"], whole["output.logits"][:, 4:], atol=1e-12)
