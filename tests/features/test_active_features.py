"""The strongest features of tokens: what they leave and which words they raise, against sums written out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from placing import FED, FOLDERS, IDS, STREAM, loaded, model, place_of
from reference import in_float64
from refusing import refuses

import tui_transformer
from tui_transformer import Features, InputError, Metric, Patch, Scale, Set, active_features, attribute, effects
from tui_transformer.features.labels import read_labels

SINGLE = [name for name in FOLDERS if "cross" not in name]


def traced(name: str, at: str | None = None, kind: str = "decoder", *, replace: bool = False, norm: str = "pre"):
    """A trace, the dictionary in it, and the steps that it reads and is to give."""
    features = loaded(name)
    reads = at or place_of(features)
    trace = model(kind, norm=norm).with_features(features, reads, replace=replace).trace(ids=IDS)
    return trace, features, reads, trace.program.step(f"{reads}.error").inputs[0]


@pytest.mark.parametrize("name", SINGLE)
def test_what_features_leave_is_what_the_dictionary_leaves_without_the_others(name: str) -> None:
    trace, features, reads, gives = traced(name)
    for each in active_features(trace, top=3):
        x, y, values = trace[reads][each.token], trace[gives][each.token], trace[f"{reads}.features"][each.token]
        order = sorted(np.flatnonzero(values).tolist(), key=lambda feature: -values[feature])
        assert [one.feature for one in each.features] == order[:3]
        assert (each.active, [one.rank for one in each.features]) == (len(order), [1, 2, 3][: len(order)])
        kept = np.zeros_like(values)
        for one in each.features:
            assert one.value == values[one.feature]
            kept[one.feature] = one.value
            left = np.linalg.norm(y - features.decode(kept, x)) / np.linalg.norm(y)
            assert one.left == pytest.approx(left, abs=1e-10)
        whole = np.linalg.norm(y - features.decode(values, x)) / np.linalg.norm(y)
        assert each.error == pytest.approx(whole, abs=1e-10)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("at", ["decoder.0.output", "decoder.1.output", "decoder.1.feed_forward.output"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_words_are_the_terms_of_the_logits(at: str, norm: str, replace: bool) -> None:
    trace, _, _, _ = traced("saelens-topk", at, replace=replace, norm=norm)
    found = list(active_features(trace, at))
    words = list(tui_transformer.feature_words(trace, found))
    assert [len(each) for each in words] == [len(each.features) for each in found]
    last = words[-1]
    np.testing.assert_allclose(last.mean(axis=1), 0, atol=1e-12)
    if at != "decoder.0.output":  # behind it only norms are on the way
        terms = attribute(trace, 5, 2, features=True).to_dict()
        for one, row in zip(found[-1].features, last, strict=True):
            assert row[5] - row[2] == pytest.approx(terms[f"{at}.features[{one.feature}]"], abs=1e-10)
    trace.block = 1  # a token at a time
    for each, other in zip(tui_transformer.feature_words(trace, found), words, strict=True):
        np.testing.assert_allclose(each, other, atol=1e-12)


def test_features_and_tokens_are_shown_that_are_asked_for() -> None:
    # features that are not active
    trace, _, reads, _ = traced("saelens-topk")
    values = trace[f"{reads}.features"]
    idle = int(np.flatnonzero(~values.any(axis=0))[0])
    active = int(values[2].argmax())
    for each in active_features(trace, features=[idle, active], tokens=range(1, 3)):
        assert [one.feature for one in each.features] == [idle, active]
        assert (each.features[0].value, each.features[0].rank) == (0.0, 0)
        assert each.features[1].value == values[each.token, active]
        assert not each.written[0].any()
    # one token, from the end too
    story = in_float64("story")
    trace = story.with_features(Features.of(story)).trace("Once there was a small girl")
    every = list(active_features(trace))
    for token in (0, 2, -1, -len(every)):
        (one,) = active_features(trace, tokens=token)
        assert (one.token, one.features) == (token % len(every), every[token].features)


def test_a_token_without_features_and_one_that_is_0() -> None:
    trace, _, reads, gives = traced("saelens-standard-no-bias-in")
    none = trace.edited([Set(f"{reads}.features", 0.0, rows=1)])
    found = list(active_features(none))
    assert (found[1].active, found[1].features) == (0, ())
    assert [len(words) for words in tui_transformer.feature_words(none, found)] == [
        len(each.features) for each in found
    ]
    silent = trace.edited([Set(gives, 0.0, rows=0)])
    assert np.isnan(next(active_features(silent)).error)


def test_where_there_are_none_that_is_said() -> None:
    plain = model()
    refuses("the model has no features", lambda: active_features(plain.trace(ids=IDS)))
    dictionary = loaded("saelens-topk")
    both = plain.with_features(dictionary, "decoder.0.output").with_features(dictionary, "decoder.1.output")
    trace = both.trace(ids=IDS)
    refuses("name one of them", lambda: active_features(trace))
    assert next(active_features(trace, "1.output")).at == "decoder.1.output"
    refuses("no step is called", lambda: active_features(trace, "decoder.0.feed_forward.output"))
    refuses("there is no token 4: tokens are 0 to 3", lambda: active_features(trace, "0.output", tokens=range(4, 5)))
    refuses("there is no token -5: tokens are 0 to 3", lambda: active_features(trace, "0.output", tokens=-5))
    refuses("there is no feature 96: features are 0 to 95", lambda: active_features(trace, "0.output", features=[96]))
    refuses("top is -1: use 0 or more", lambda: active_features(trace, "0.output", top=-1))
    inside, _, _, _ = traced("saelens-topk", "encoder.1.output", "encoder-decoder")
    with pytest.raises(InputError, match="nothing spells words through it"):
        list(tui_transformer.feature_words(inside, list(active_features(inside))))


LABELS = [
    ("a.csv", "feature,label\n12,the sea\n3,\n12,another\n40, ships \n"),
    ("a.csv", "12,the sea\n40,ships\n"),
    ("a.csv", "layer,Index,Description\n8,12,the sea\n8,40,ships\n"),
    ("a.json", '[{"modelId": "gpt2", "index": "12", "description": "the sea"}, {"index": 40, "description": "ships"}]'),
    ("a.jsonl", '{"index": "12", "description": "the sea"}\n\n{"feature": 40, "label": "ships"}\n'),
]
NO_LABELS = [
    ("a.csv", "", "there is no label in it"),
    ("a.csv", "the sea,12\n", "no labels of features"),
    ("a.csv", "-1,the sea\n", "no labels of features"),
    ("a.json", "{}", "not a JSON list"),
    ("a.json", '[{"index": true, "label": "x"}]', "no labels of features"),
    ("a.jsonl", '{"index": 3}\n', "no labels of features"),
]


def test_labels_are_read_as_people_have_them_and_what_has_none_is_refused(tmp_path: Path) -> None:
    for name, text in LABELS:
        (tmp_path / name).write_text(text)
        assert read_labels(tmp_path / name) == {12: "the sea", 40: "ships"}
    for name, text, says in NO_LABELS:
        (tmp_path / name).write_text(text)
        refuses(f"{name}.*{says}", lambda name=name: read_labels(tmp_path / name))
    refuses("no such file", lambda: read_labels(tmp_path / "nothing.csv"))


@pytest.mark.parametrize("replace", [False, True])
def test_words_of_a_cross_layer_feature_are_of_all_layers_that_it_writes_into(replace: bool) -> None:
    features = loaded("circuit-tracer-cross-layer")
    trace = model().with_features(features, FED, replace=replace).trace(ids=IDS)
    (last,) = active_features(trace, FED.format(0), top=4, tokens=-1)
    (words,) = tui_transformer.feature_words(trace, [last])
    chosen, values = [one.feature for one in last.features], np.array([one.value for one in last.features])
    first = features.layers[0]
    decoders = [part.cells(...).astype(np.float64) for part in (first.parts["decoder"], *first.writes)]
    assert len(decoders) == 2
    vectors = values[:, None] * sum(decoder[chosen] for decoder in decoders)
    norm = trace.program.step("decoder.norm")
    deviation = np.sqrt(trace[norm.inputs[0]][-1].var() + norm.op.epsilon)
    moved = (vectors - vectors.mean(axis=1, keepdims=True)) / deviation * trace["decoder.norm.weight"]
    logits = trace.program.step("output.logits")
    weight = trace[logits.inputs[1]]
    right = moved @ (weight if weight.shape[0] == 32 else weight.T)
    np.testing.assert_allclose(words, right - right.mean(axis=1, keepdims=True), rtol=0, atol=1e-12)
    assert len(chosen) == 4


# Features are patched, ablated, attributed and differentiated as any other step is, against sums by hand


def test_features_of_another_sentence_are_patched_in() -> None:
    plain, features = model(), loaded("saelens-topk")
    trace, other = (plain.with_features(features, STREAM).trace(ids=ids) for ids in (IDS, [6, 1, 2, 7]))
    patched = trace.edited([Patch.between(trace, other, f"{STREAM}.features", rows=range(1, 3))])
    rows = features.layers[0].parts["decoder"].cells(...).astype(np.float64)
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
    refuses("use 0 to 95", lambda: list(effects(trace, [f"feature:{STREAM}:96"])))
    refuses("no features that can be ablated", lambda: list(effects(model().trace(ids=IDS), "feature")))


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
    assert tui_transformer.every(trace.program, "neuron") == tui_transformer.every(before.program, "neuron")
    for one, other in zip(tui_transformer.head_lens(trace, 2), tui_transformer.head_lens(before, 2), strict=True):
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
        (words,) = tui_transformer.feature_words(trace, [strongest])
        other = attribute(trace, 2, features=True).to_dict()
        name = f"{at}.features[{strongest.features[0].feature}]"
        assert words[0, 5] - words[0, 2] == pytest.approx(found.to_dict()[name] - other[name], abs=1e-10)


def test_gradients_of_features_are_those_of_what_they_write() -> None:
    at, metric = "decoder.0.output", Metric("logit", (5,))
    features = loaded("saelens-jumprelu")
    trace = model().with_features(features, at).trace(ids=IDS)
    found = tui_transformer.gradients_of(trace, metric).values
    rows = features.layers[0].parts["decoder"].cells(...).astype(np.float64)
    np.testing.assert_allclose(found[f"{at}.features"], found[f"{at}.output"] @ rows.T, atol=1e-12)
    own = trace.program.named(at)
    np.testing.assert_allclose(
        found[own], tui_transformer.gradients_of(model().trace(ids=IDS), metric).values[own], rtol=0, atol=1e-15
    )
