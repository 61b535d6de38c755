"""Path patching and its estimate, beside the definition by whole runs with parts held."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from ended import ended
from reference import REFERENCES, in_float64, with_settings
from refusing import refuses

from tui_transformer import Ablate, Metric, Model, OfLogits, Patch, Scale, Set, Trace, paths
from tui_transformer.analysis.nodes import RECEIVERS, SENDERS, nodes
from tui_transformer.errors import UsageError

OWN, OTHER = [2, 5, 3, 6, 4], [2, 7, 3, 8, 4]
METRIC = Metric("difference", (3, 9))
EVERYTHING = [tuple(SENDERS)]


def sentences(name: str, **options: object) -> tuple[Trace, Trace]:
    model = in_float64(name)
    written = ([2, 3, 4], [2, 5, 4]) if model.has_decoder else (None, None)
    own, other = (model.trace(ids=i, decoder_ids=d, **options) for i, d in zip((OWN, OTHER), written, strict=True))
    return own, other


def by_hand(own: Trace, other: Trace, senders: list[tuple], receivers: list[tuple]) -> Trace:
    """The sentence with a path patched as the paper defines it: senders are held, and what receivers read is set."""
    held = {f"{layer}.{place}": np.array(own[f"{layer}.{place}"]) for layer in (0, 1) for place in PLACES}
    held["embedding.output"] = np.array(own["embedding.output"])
    for kind, layer, *head in senders:
        place = {"embedding": "embedding.output", "head": f"{layer}.{PLACES[0]}"}.get(kind, f"{layer}.{PLACES[1]}")
        held[place][head or ...] = other[place][head or ...]
    straight = own.edited([Patch.of(place, values) for place, values in held.items()])
    if receivers == [("logits", 0)]:
        return straight
    steps = [(f"{layer}.self_attention.{kind}", head) for kind, layer, head in receivers]
    return own.edited([Set(step, straight[step][head], heads=head) for step, head in steps])


PLACES = ("self_attention.context", "feed_forward.output")
PAIRS = [
    ([("head", 0, 1)], [("logits", 0)]),
    ([("feed_forward", 1)], [("logits", 0)]),
    ([("head", 0, 2)], [("query", 1, 3)]),
    ([("feed_forward", 0)], [("key", 1, 0)]),
    ([("embedding", 0)], [("value", 1, 2)]),
    ([("embedding", 0)], [("query", 0, 1)]),
    ([("embedding", 0), ("head", 0, 0)], [("query", 1, 0), ("value", 1, 1), ("value", 1, 0)]),
]


def called(part: tuple, stack: str) -> str:
    kind, layer, *head = part
    if kind in ("embedding", "logits"):
        return kind
    return ":".join(
        [kind, f"{stack}.{layer}.{'feed_forward' if kind == 'feed_forward' else 'self_attention'}", *map(str, head)]
    )


@pytest.mark.parametrize("name", ["vanilla-decoder", "vanilla-encoder"])
def test_a_path_is_what_the_paper_defines(name):
    own, other = sentences(name)
    for senders, receivers in PAIRS:
        names = [[[called(part, name.removeprefix("vanilla-")) for part in parts]] for parts in (senders, receivers)]
        found = paths(own, other, *names, METRIC)
        logits = by_hand(own, other, senders, receivers)["output.logits"][-1]
        assert found.values.shape == (1, 1)
        assert found.values[0, 0] == pytest.approx(logits[3] - logits[9], abs=1e-12), (senders, receivers)
        assert abs(found.changes[0, 0]) > 1e-7


@pytest.mark.parametrize(
    "name", ["gpt2", "bert", "bart", "t5", "gptj", "gemma2", "olmo2", "mixtral", "deberta-v2", "albert", "marian"]
)
def test_all_senders_at_once_bring_the_whole_difference(name):
    own, other = sentences(name)
    found = paths(own, other, EVERYTHING, "logits", METRIC)
    assert found.own != pytest.approx(found.other, abs=1e-3)
    assert found.values[0, 0] == pytest.approx(found.other, abs=1e-9)
    assert found.other == METRIC.measure(other)
    assert found.shares[0, 0] == pytest.approx(1.0, abs=1e-9)


def test_by_default_all_senders_are_patched_into_the_logits():
    own, other = sentences("gpt2")
    found = paths(own, other)
    assert [str(each) for each in found.senders[:2]] == ["embedding:decoder", "head:decoder.0.self_attention:0"]
    assert (len(found.senders), [str(each) for each in found.receivers]) == (1 + 2 * 4 + 2, ["logits"])
    assert found.own == 0.0
    assert found.other == Metric("divergence").measure(other, own)
    rows = found.rows()
    assert [row["sender"] for row in rows] == [str(each) for each in found.senders]
    assert (rows[0]["sender_layer"], rows[6]["sender_layer"], rows[6]["sender_head"]) == (-1, 1, 1)
    assert rows[3]["share"] == pytest.approx(rows[3]["change"] / (found.other - found.own))
    assert repr(found) == "<Paths by patching: 11 senders × 1 receivers, 11 paths>"


@pytest.mark.parametrize("by", ["patching", "gradient"])
def test_numbers_are_the_same_however_they_are_computed(by):
    own, other = sentences("gpt2")
    receivers = ["logits", "query", ["key:1.self_attention:1", "value:1.self_attention"]]
    found = paths(own, other, receivers=receivers, metric=METRIC, by=by)
    for trace, rows in ((own, 1), (replace(sentences("gpt2", budget=0)[0], block=1), 512)):
        again = paths(trace, other, receivers=receivers, metric=METRIC, by=by, rows=rows)
        np.testing.assert_allclose(again.values, found.values, rtol=0, atol=1e-12)
    batched = (in_float64("gpt2").trace(ids=[ids]) for ids in (OWN, OTHER))
    again = paths(*batched, receivers=receivers, metric=METRIC, by=by)
    np.testing.assert_allclose(again.values, found.values, rtol=0, atol=1e-12)


def test_there_is_no_path_back_and_none_through_another_part():
    own, other = sentences("gpt2")
    found = paths(own, other, receivers=["query", "logits"], metric=METRIC)
    for (i, sender), (j, receiver) in product(enumerate(found.senders), enumerate(found.receivers)):
        there = receiver.layer is None or sender.layer < receiver.layer
        assert np.isnan(found.values[i, j]) != there, (sender, receiver)
    assert len(found.rows()) == 11 + 4 + 4 * (1 + 4 + 1)
    refuses("senders come first", lambda: paths(own, other, "head:1.self_attention", "query:0.self_attention", METRIC))
    own, other = sentences("bart")
    found = paths(own, other, "head:encoder.0.self_attention:1", ["logits", "key:decoder.0.cross_attention"], METRIC)
    assert np.isnan(found.values).tolist() == [[True, False, False, False, False]]


def test_query_heads_that_share_keys_share_a_receiver():
    own, other = sentences("llama")
    assert own.program.shape("0.self_attention.key")[0] == 2
    found = paths(own, other, "embedding", ["query:0.self_attention", "key:0.self_attention"], METRIC)
    assert [each.head for each in found.receivers] == [0, 1, 2, 3, 0, 1]
    key = np.array(own["0.self_attention.key"])
    key[1] = other["0.self_attention.key"][1]
    logits = own.edited([Patch.of("0.self_attention.key", key)])["output.logits"][-1]
    assert found.values[0, 5] == pytest.approx(logits[3] - logits[9], abs=1e-12)


def test_edits_of_the_sentence_are_kept_on_the_way():
    changes = [
        Scale("0.self_attention.output.weight", 0.5),
        Set("1.self_attention.context", 0.25, heads=2),
        Scale("0.feed_forward.residual", 2.0, rows=4),
    ]
    own, other = (each.edited(changes) for each in sentences("gpt2"))
    found = paths(own, other, EVERYTHING, "logits", METRIC)
    assert found.values[0, 0] == pytest.approx(METRIC.measure(other), abs=1e-9)
    own = own.edited([Set("1.self_attention.key", 0.5, heads=1)])
    found = paths(own, other, "embedding", "key:1.self_attention", METRIC)
    assert found.changes[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(found.changes[0, [0, 3]]).min() > 1e-9


def test_no_path_moves_a_mean_that_an_edit_sets():
    stream = "decoder.0.feed_forward.residual"
    own, other = sentences("gpt2")
    region = tuple(map(range, own.program.shape(stream)))
    found = paths(own.edited([Ablate(stream, region, mean=True)]), other, "head:0.self_attention", "logits", METRIC)
    assert found.changes == pytest.approx(0.0, abs=1e-12)


def test_receivers_of_feed_forward_layers_are_what_they_read():
    for name, steps in (
        ("gpt2", ["decoder.0.feed_forward.norm"]),
        ("bert", ["encoder.0.feed_forward.hidden"]),
        ("gptj", ["decoder.0.feed_forward.hidden"]),
        ("olmo2", ["decoder.0.feed_forward.gate", "decoder.0.feed_forward.hidden"]),
        ("mixtral", ["decoder.0.feed_forward.norm"]),
    ):
        own, other = sentences(name)
        node = nodes(own.program, "feed_forward:0.feed_forward", RECEIVERS)[0]
        assert sorted(node.steps) == steps
        found = paths(own, other, "embedding", str(node), METRIC)
        stream = own.edited([Patch.of("embedding.output", np.array(other["embedding.output"]))])
        if name in ("gpt2", "olmo2"):
            frozen = stream.edited([Patch.between(own, own, "0.self_attention.context")])
            patched = own.edited([Patch.between(own, frozen, each) for each in steps])
            assert found.values[0, 0] == pytest.approx(METRIC.measure(patched), abs=1e-12)


# The estimate


@pytest.mark.parametrize("name", ["gpt2", "bart", "gemma2", "gptj"])
def test_the_estimate_is_how_the_metric_begins_to_move(name):
    own, other = sentences(name)
    receivers = [*RECEIVERS, ["query", "key:0.self_attention", "feed_forward"]] if name != "bart" else list(RECEIVERS)
    steps = {step for each in nodes(own.program, tuple(SENDERS), SENDERS) for step in each.steps}
    found = paths(own, other, receivers=receivers, metric=METRIC, by="gradient")
    small = 1e-5
    ends = [
        own.edited([Patch.of(step, own[step] + sign * small * (other[step] - own[step])) for step in steps])
        for sign in (1, -1)
    ]
    up, down = (paths(own, each, receivers=receivers, metric=METRIC).values for each in ends)
    np.testing.assert_allclose(found.changes, (up - down) / (2 * small), rtol=1e-6, atol=1e-8)
    assert np.nanmax(np.abs(found.changes)) > 0.1


def test_the_estimate_is_exact_where_all_is_linear(tmp_path):
    """Where the stream is far smaller than ε, a layer norm divides by a constant."""
    model = in_float64(with_settings(tmp_path / "linear", "vanilla-decoder", norm_epsilon=0.5))
    ends = ("embedding.tokens.weight", "embedding.positions.weight", "output.weight", "output.bias")
    small = [Scale(name, 1e-4) for name in model.program(5).weights if name.endswith(ends)]
    own, other = (model.trace(ids=ids).edited(small) for ids in (OWN, OTHER))
    true, estimate = (paths(own, other, metric=METRIC, by=by) for by in ("patching", "gradient"))
    np.testing.assert_allclose(estimate.changes, true.changes, rtol=1e-6, atol=1e-6 * true.changes.max())
    assert true.changes.max() > 1e-15
    assert estimate.changes.sum() == pytest.approx(true.other - true.own, rel=1e-6)


def test_any_estimates_together_are_sums_and_one_word_has_paths():
    own, other = sentences("gpt2")
    single = paths(own, other, receivers="logits", metric=METRIC, by="gradient")
    together = paths(own, other, EVERYTHING, "logits", METRIC, by="gradient")
    assert together.changes[0, 0] == pytest.approx(single.changes.sum(), abs=1e-12)
    model = in_float64("gpt2")
    own, other = model.trace(ids=[5]), model.trace(ids=[6])
    for by in ("patching", "gradient"):
        found = paths(own, other, [*SENDERS, tuple(SENDERS)], metric=METRIC, by=by)
        assert found.values.shape == (12, 1)
    assert paths(own, other, EVERYTHING, metric=METRIC).values[0, 0] == pytest.approx(found.other, abs=1e-9)


# What is measured, and what is refused


def test_any_function_is_the_metric():
    own, other = sentences("gpt2")
    wanted = paths(own, other, receivers=["logits", "value"], metric=METRIC).values
    for metric in (
        OfLogits(lambda logits: logits[-1, 3] - logits[-1, 9]),
        lambda trace: trace["output.logits"][-1, 3] - trace["output.logits"][-1, 9],
    ):
        np.testing.assert_allclose(paths(own, other, receivers=["logits", "value"], metric=metric).values, wanted)
    slope = np.eye(1, own.program.shape("output.logits")[1], 3) - np.eye(1, own.program.shape("output.logits")[1], 9)
    ends = (METRIC, OfLogits(lambda logits: logits[-1, 3] - logits[-1, 9], lambda _: slope))
    wanted, got = (paths(own, other, receivers=["logits", "value"], metric=each, by="gradient").values for each in ends)
    np.testing.assert_allclose(got, wanted, atol=1e-14)
    name = "1.self_attention.weights"
    found = paths(own, other, "head", "key:1.self_attention:2", lambda trace: trace[name][2, 4, 1])
    moved = [row["change"] != 0.0 for row in found.rows()]
    assert moved == [True] * 4
    refuses("a function of a trace has no gradient", lambda: paths(own, other, metric=lambda trace: 0.0, by="gradient"))
    refuses("has gradient 0: choose another metric", lambda: paths(own, other, by="gradient"))


def test_models_without_words_are_measured_by_functions():
    model = in_float64(REFERENCES.parent / "sentences" / "bert")
    own, other = model.trace(ids=OWN), model.trace(ids=OTHER)
    last = own.program.steps[-1].name
    found = paths(own, other, EVERYTHING, "logits", lambda trace: trace[last][0])
    assert found.values[0, 0] == pytest.approx(other[last][0], abs=1e-9)
    refuses("no logits of words", lambda: paths(own, other))


def test_work_is_told_and_can_be_ended():
    own, other = sentences("gpt2")
    said, ran = [], []
    paths(own, other, metric=METRIC, report=said.append, before=lambda step: ran.append(step.name))
    assert (said[0], said[-1]) == ("0 of 11 paths", "11 of 11 paths")
    assert "output.logits" in ran
    ended(lambda report: paths(own, other, metric=METRIC, report=report, rows=20), lambda said: said.startswith("4"))
    way = {"metric": METRIC, "by": "gradient", "rows": 20}
    ended(lambda report: paths(own, other, report=report, **way), lambda said: "gradient of decoder.1" in said)


def test_what_is_no_path_is_refused_nor_are_sentences_that_do_not_fit():
    for given, said in (
        ({"senders": "heads"}, "'heads' is none of embedding, head, feed_forward"),
        ({"receivers": "head"}, "'head' is none of query, key, value, feed_forward, logits: write query or query:dec"),
        ({"senders": "head:9.self_attention"}, "no step is called '9.self_attention'"),
        ({"senders": "head:0.self_attention:4"}, r"decoder.0.self_attention has no head '4': use 0 to 3"),
        ({"senders": []}, "the model has no such nodes"),
        ({"by": "guess"}, "paths are measured by patching or gradient, not by 'guess'"),
    ):
        own, other = sentences("gpt2")
        refuses(said, lambda given=given, other=other, own=own: paths(own, other, metric=METRIC, **given))
    model = in_float64("gpt2")
    own, longer = model.trace(ids=OWN), model.trace(ids=[*OWN, 3])
    refuses("the sentences have 5 and 6 tokens: paths need as many", lambda: paths(own, longer))
    refuses("paths are of single sentences", lambda: paths(model.trace(ids=[OWN, OTHER]), own), UsageError)
    attention = Model.load("attention").trace()
    refuses("no residual stream", lambda: paths(attention, attention))
