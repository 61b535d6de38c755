"""Features are patched, ablated, attributed and differentiated as any other step is, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest
from placing import FED, IDS, STREAM, loaded, model

from tui_transformer import (
    InputError,
    Metric,
    Patch,
    Scale,
    Set,
    active_features,
    attribute,
    effects,
    every,
    feature_words,
    gradients_of,
    head_lens,
)


def test_features_of_another_sentence_are_patched_in() -> None:
    plain, features = model(), loaded("saelens-topk")
    trace, other = (plain.with_features(features, STREAM).trace(ids=ids) for ids in (IDS, [6, 1, 2, 7]))
    patched = trace.edited([Patch.between(trace, other, f"{STREAM}.features", rows=range(1, 3))])
    rows = features.layers[0].parts["decoder"].rows(0, features.count, np.float64)
    moved = np.array([[0.0], [1.0], [1.0], [0.0]]) * (
        (other[f"{STREAM}.features"] - trace[f"{STREAM}.features"]) @ rows
    )
    by_hand = plain.trace(ids=IDS).edited([Patch.of(STREAM, trace[STREAM] + moved)])
    np.testing.assert_allclose(patched["output.logits"], by_hand["output.logits"], rtol=0, atol=1e-10)


def test_features_are_ablated_as_heads_are() -> None:
    trace = model().with_features(loaded("saelens-topk"), STREAM).trace(ids=IDS)
    last = trace[f"{STREAM}.features"][-1]
    active, idle = int(last.argmax()), int(last.argmin())
    found = {str(target): effect for target, effect in effects(trace, f"feature:{STREAM}")}
    assert len(found) == 96
    edited = trace.edited([Scale(f"{STREAM}.features", 0.0, columns=active)])
    p, q = (each["output.probabilities"][-1] for each in (trace, edited))
    assert found[f"feature:{STREAM}:{active}"].divergence == pytest.approx((p * np.log(p / q)).sum(), abs=1e-12)
    assert found[f"feature:{STREAM}:{idle}"].divergence == 0.0
    with pytest.raises(InputError, match="use 0 to 95"):
        list(effects(trace, [f"feature:{STREAM}:96"]))
    with pytest.raises(InputError, match="no features that can be ablated"):
        list(effects(model().trace(ids=IDS), "feature"))


@pytest.mark.parametrize("name", ["saelens-topk", "saelens-skip-transcoder", "saelens-standard-layer-norm"])
def test_a_logit_is_the_sum_of_what_features_write_toward_it(name: str) -> None:
    features, at = loaded(name), FED.format(1) if "transcoder" in name else STREAM
    for replace in (False, True):
        trace = model().with_features(features, at, replace=replace).trace(ids=IDS)
        found = attribute(trace, 5, features=True)
        terms = [term for term in found.terms if term.kind == "feature"]
        active = np.flatnonzero(trace[f"{at}.features"][-1])
        assert [term.number for term in terms] == active.tolist()
        assert found.logit == pytest.approx(trace["output.logits"][-1, 5])
        assert found.remainder == pytest.approx(0.0, abs=1e-9)
        assert (f"{at}.error" in found.to_dict()) != replace
        assert any(term.kind == "head" and term.name.startswith("decoder.1") for term in found.terms) == (
            "transcoder" in name
        )
    without = attribute(model().with_features(features, at).trace(ids=IDS), 5)
    assert not any(term.kind == "feature" for term in without.terms)
    assert without.remainder == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("at", ["decoder.0.self_attention.concat", "decoder.1.feed_forward.activation"])
def test_heads_and_neurons_are_those_of_the_model_where_features_are_of_them(at: str) -> None:
    plain = model(d_ff=32)
    trace, before = plain.with_features(loaded("gemma-scope"), at).trace(ids=IDS), plain.trace(ids=IDS)
    assert every(trace.program, "neuron") == every(before.program, "neuron")
    for one, other in zip(head_lens(trace, 2), head_lens(before, 2), strict=True):
        np.testing.assert_allclose(one.logits, other.logits, atol=1e-12)
    terms = attribute(trace, 5, neurons=True).to_dict()
    assert terms.pop(f"{at}.change") == 0.0
    assert terms == pytest.approx(attribute(before, 5, neurons=True).to_dict(), abs=1e-12)
    found = attribute(trace, 5, features=True)
    assert found.remainder == pytest.approx(0.0, abs=1e-9)
    by_feature = {term.number: term.value for term in found.terms if term.kind == "feature"}
    assert sorted(by_feature) == np.flatnonzero(trace[f"{at}.features"][-1]).tolist()
    if "activation" in at:  # the last layer: nothing but the norm is behind it
        (strongest,) = active_features(trace, top=1, tokens=range(3, 4))
        (words,) = feature_words(trace, [strongest])
        other = attribute(trace, 2, features=True).to_dict()
        name = f"{at}.features[{strongest.features[0].feature}]"
        assert words[0, 5] - words[0, 2] == pytest.approx(found.to_dict()[name] - other[name], abs=1e-10)


def test_gradients_of_features_are_those_of_what_they_write() -> None:
    at, metric = "decoder.0.output", Metric("logit", (5,))
    features = loaded("saelens-jumprelu")
    trace = model().with_features(features, at).trace(ids=IDS)
    found = gradients_of(trace, metric).values
    rows = features.layers[0].parts["decoder"].rows(0, features.count, np.float64)
    np.testing.assert_allclose(found[f"{at}.features"], found[f"{at}.output"] @ rows.T, atol=1e-12)
    own = trace.program.named(at)
    np.testing.assert_allclose(found[own], gradients_of(model().trace(ids=IDS), metric).values[own], rtol=0, atol=1e-15)
    change = 1e-5
    cell = tuple(np.argwhere(trace[f"{at}.features"])[0].tolist())
    ends = []
    for sign in (1, -1):
        moved = trace[f"{at}.features"][cell] + sign * change
        edited = trace.edited([Set(f"{at}.features", moved, rows=cell[0], columns=cell[1])])
        ends.append(edited["output.logits"][-1, 5])
    assert found[f"{at}.features"][cell] == pytest.approx((ends[0] - ends[1]) / (2 * change), rel=1e-6)
