"""Dumps of float16 and bf16: a single wrong cell is found, and what such roundings make is right."""

from __future__ import annotations

import numpy as np
import pytest
from dumping import computed, dumped, in_few_bits, model_of
from reference import REFERENCES
from small import Arrays

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.dumps.dump import BFLOAT16, FLOAT16, FLOAT32, Dump, Precision, held
from tui_transformer.model import Model

FEW_BITS = {"float16": FLOAT16, "bfloat16": BFLOAT16}
FAMILIES = ("post", "pre", "llama")


def stored(arrays: Arrays, precision: Precision) -> Dump:
    return dumped(in_few_bits(arrays, precision), precision)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("few", FEW_BITS)
def test_right_numbers_of_few_bits_are_the_same(name: str, few: str) -> None:
    arrays = computed(name, few)
    names = [each for each in arrays if each != "output.logits"]
    for some in (names, names[::3], names[-1:]):
        found = diagnose(stored({each: arrays[each] for each in some}, FEW_BITS[few]), model_of(name))
        assert found.first is None, found.first.says


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("few", FEW_BITS)
def test_one_wrong_cell_of_few_bits_is_found_however_few_steps_there_are(name: str, few: str) -> None:
    arrays, random = computed(name, few), np.random.default_rng(0)
    names = [each for each in arrays if each.endswith((".norm", ".residual", ".query", ".value", "n.output", "logits"))]
    for step in names:
        wrong = arrays[step].copy()
        cell = tuple(int(random.integers(size)) for size in wrong.shape)
        wrong[cell] += 0.5 * (1 + abs(wrong[cell]))
        for before in ([], names[: names.index(step)][-2:]):
            dump = stored({**{each: arrays[each] for each in before}, step: wrong}, FEW_BITS[few])
            first = diagnose(dump, model_of(name)).first
            assert first is not None, (step, before)
            assert (first.step, first.index) == (step, cell)


@pytest.mark.parametrize("few", FEW_BITS)
def test_a_step_that_is_one_in_a_hundred_too_large_is_found(few: str) -> None:
    arrays = computed("post", few)
    step = "encoder.1.feed_forward.norm"
    arrays[step] = arrays[step] * np.float32(1.01)
    first = diagnose(stored(arrays, FEW_BITS[few]), model_of("post")).first
    assert first is not None
    assert first.step == step


def test_float32_behind_float16_that_was_computed_so_is_granted_its_roundings() -> None:
    arrays = computed("pre", "float16")
    arrays["output.logits"] = arrays["output.logits"].astype(np.float32)
    dump = stored({name: array for name, array in arrays.items() if name != "output.logits"}, FLOAT16)
    logits = held("output.logits", arrays["output.logits"], FLOAT32)
    assert diagnose(Dump(dump.path, {**dump.tensors, "output.logits": logits}), model_of("pre")).first is None


def test_what_is_the_same_of_every_sentence_may_be_there_once() -> None:
    model = Model.load(REFERENCES / "deberta-v2")
    ids = np.array([[5, 9, 11, 7], [8, 4, 6, 12]])
    trace = model.trace(ids=ids.tolist())
    arrays = {name: np.asarray(trace.array(name)) for name in trace.names if name != "tokens"}
    once = {name: array[:1] if (array == array[:1]).all() else array for name, array in arrays.items()}
    assert len(once["encoder.distances_norm"]) == 1
    for dump in (dumped(once, input_ids=ids), dumped(in_few_bits(once, FLOAT16), FLOAT16, input_ids=ids)):
        found = diagnose(dump, model, Input(ids))
        assert found.first is None, found.first.says
        assert not found.unmatched


def test_a_score_that_is_not_a_number_is_wrong_though_the_mask_hides_it() -> None:
    model, step = Model.load(REFERENCES / "bloom"), "decoder.0.self_attention.biased"
    ids = np.array([[5, 9, 11, 7]])
    scores = np.array(model.trace(ids=ids.tolist()).array(step))
    assert diagnose(dumped({step: scores}, input_ids=ids), model, Input(ids)).first is None
    scores[0, 0, 1, 2] = np.nan
    assert diagnose(dumped({step: scores}, input_ids=ids), model, Input(ids)).first is not None
