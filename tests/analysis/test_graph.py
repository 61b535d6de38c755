"""Attribution graphs: sums, edges beside plain NumPy, influence beside its definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ended import ended
from graphed import FED, off, with_features
from reference import IDS, REFERENCES, in_float64, trace_of

from tui_transformer import Graph, InputError, Model, Scale, Set, Trace, graph
from tui_transformer.analysis.graph import label_of
from tui_transformer.errors import UsageError

FAMILIES = (
    *("gpt2", "llama", "gemma2", "qwen3", "olmo2", "phi", "falcon", "cohere", "granite", "nemotron", "mixtral"),
    *("gpt_oss", "olmoe", "qwen2_moe", "qwen3_moe", "bert", "albert-groups", "modernbert", "deberta-v2", "t5"),
    "marian-two-vocabularies",
    *("vanilla-encoder", "vanilla-encoder-decoder"),
)
PARTS = ("reconstruction", "pre_activations")


@pytest.mark.parametrize("name", FAMILIES)
def test_edges_into_a_node_and_its_biases_sum_to_what_it_is(name: str) -> None:
    trace = trace_of(name)
    for options in ({"mass": 0.9}, {"heads": False}, {"neurons": 3}):
        found = graph(trace, **options)
        assert off(found) < 1e-9
        assert len(found.followed) >= 1
        for row, node in zip(found.sums, found.followed, strict=True):
            if found.nodes[node].kind == "logit":
                line = trace["output.logits"][-1]
                assert row == pytest.approx(line[found.nodes[node].number] - line.mean(), abs=1e-9)


PLACES = [
    [("saelens-topk", "decoder.1.output")],
    [("saelens-gated", "embedding.output")],
    [("saelens-standard-layer-norm", "decoder.0.output"), ("circuit-tracer-relu-skip", FED.format(1))],
    [("gemma-scope", "decoder.1.self_attention.concat"), ("sparsify-transcoder-skip", FED.format(0))],
    [("circuit-tracer-cross-layer", FED)],
    [("saelens-jumprelu", "decoder.1.self_attention.norm"), ("sparsify-topk", "decoder.norm")],
]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("placed", PLACES, ids=lambda placed: placed[0][0])
def test_edges_into_a_feature_and_its_biases_sum_to_its_pre_activation(placed, replace):
    trace = with_features(*placed, replace=replace)
    found = graph(trace, mass=0.9)
    assert off(found) < 1e-9
    features = [(row, found.nodes[i]) for row, i in enumerate(found.followed) if found.nodes[i].kind == "feature"]
    assert features
    for row, node in features:
        step = f"{node.place}.pre_activations"
        assert found.sums[row] == pytest.approx(trace[step][node.token, node.number], abs=1e-12)
        assert node.value == trace[node.step][node.cell]
    errors = {node.place for node in found.nodes if node.kind == "error"}
    assert bool(errors) != replace
    assert found.replacement == 1.0 or not replace


@pytest.mark.parametrize("replace", [False, True])
def test_features_of_what_is_embedded_are_at_its_tokens(replace: bool) -> None:
    trace, model = with_features(*PLACES[1], replace=replace), Model.load(REFERENCES / "gpt2")
    found = graph(trace)
    nodes = [node for node in found.nodes if node.kind == "feature"]
    assert nodes
    for node in nodes:
        word = trace.word(int(trace.givens["input.ids"][0][node.token])) if found.words else ""
        assert found.word(node) == word
        assert bool(label_of(model, found, node)) == bool(word)


class Frozen:
    """A pre-norm decoder of two layers with attention patterns and deviations held, forwards, in plain NumPy."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.weights = {name: trace[name].astype(np.float64) for name in trace.program.weights}

    def norm(self, moved: np.ndarray, name: str) -> np.ndarray:
        """What a norm makes of a small vector for every token, its divisor held."""
        (source,) = self.trace.program.step(name).inputs[:1]
        x = self.trace[source]
        deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        return (moved - moved.mean(axis=-1, keepdims=True)) / deviation * self.weights[f"{name}.weight"]

    def heads(self, moved: np.ndarray, name: str) -> np.ndarray:
        read = self.norm(moved, f"{name}.norm") @ self.weights[f"{name}.value.weight"]
        values = np.stack(np.split(read, 4, axis=1))
        return self.trace[f"{name}.weights"] @ values

    def attended(self, moved: np.ndarray, name: str) -> np.ndarray:
        return np.concatenate(self.heads(moved, name), axis=1) @ self.weights[f"{name}.output.weight"]

    def fed(self, moved: np.ndarray, name: str) -> np.ndarray:
        hidden, active = self.trace[f"{name}.hidden"], self.trace[f"{name}.activation"]
        read = self.norm(moved, f"{name}.norm") @ self.weights[f"{name}.hidden.weight"]
        return read * (active / hidden) @ self.weights[f"{name}.output.weight"]

    def logit(self, moved: np.ndarray, token: int) -> float:
        table = self.weights["embedding.tokens.weight"]
        return float(self.norm(moved, "decoder.norm")[-1] @ (table[token] - table.mean(axis=0)))


def along(moved: np.ndarray, own: np.ndarray) -> float:
    return float(moved @ own / np.linalg.norm(own))


def test_an_edge_between_heads_and_layers_is_the_effect_of_one_on_the_other_with_all_else_held() -> None:
    trace = trace_of("vanilla-decoder")
    hand, found = Frozen(trace), graph(trace)

    def written(node) -> np.ndarray:
        vector = trace[node.step]
        if node.kind == "head":
            vector = vector[node.number] @ hand.weights[f"{node.place}.output.weight"].reshape(4, -1, 16)[node.number]
        return np.where(np.arange(len(vector))[:, None] == node.token, vector, 0.0)

    checked = 0
    for row, index in enumerate(found.followed):
        target = found.nodes[index]
        for source, weight in zip(found.nodes, found.weights[row], strict=True):
            if not weight:
                continue
            moved = written(source)
            if target.kind == "head":
                own = trace[target.step][target.number, target.token]
                wanted = along(hand.heads(moved, target.place)[target.number, target.token], own)
            elif target.kind == "feed_forward":
                wanted = along(hand.fed(moved, target.place)[target.token], trace[target.step][target.token])
            else:
                wanted = hand.logit(moved, target.number)
            assert weight == pytest.approx(wanted, abs=1e-9)
            checked += 1
    assert checked > 100


def test_an_edge_from_a_feature_goes_through_attention_and_past_feed_forward_layers() -> None:
    trace = with_features(("circuit-tracer-relu", FED.format(0)), ("circuit-tracer-jumprelu", FED.format(1)))
    hand, found = Frozen(trace), graph(trace)
    decoder, encoder = (hand.weights[f"{FED.format(i)}.{name}.weight"] for i, name in enumerate(PARTS))
    checked = 0
    for row, index in enumerate(found.followed):
        target = found.nodes[index]
        if (target.kind, target.place) != ("feature", FED.format(1)):
            continue
        for source, weight in zip(found.nodes, found.weights[row], strict=True):
            if (source.kind, source.place) != ("feature", FED.format(0)) or source.token > target.token:
                continue
            moved = np.zeros((4, 32))
            moved[source.token] = source.value * decoder[source.number]
            moved = moved + hand.attended(moved, "decoder.1.self_attention")
            read = hand.norm(moved, FED.format(1))[target.token] @ encoder[:, target.number]
            assert weight == pytest.approx(read, abs=1e-9)
            checked += 1
    assert checked > 100


def dense(found: Graph) -> np.ndarray:
    """All edges, targets × sources."""
    matrix = np.zeros((len(found.nodes),) * 2)
    matrix[found.followed] = found.weights
    return matrix


def normal(matrix: np.ndarray) -> np.ndarray:
    return np.abs(matrix) / np.abs(matrix).sum(axis=1, keepdims=True).clip(1e-10)


def summed(shares: np.ndarray, start: np.ndarray) -> np.ndarray:
    """start (N + N² + …) = start ((I − N)⁻¹ − I)."""
    unit = np.eye(len(shares))
    return start @ (np.linalg.inv(unit - shares) - unit)


def enough(scores: np.ndarray, share: float) -> np.ndarray:
    """The largest that have this share together."""
    order = np.argsort(-scores.reshape(-1), kind="stable")
    total = np.cumsum(scores.reshape(-1)[order]) / scores.sum()
    return scores >= scores.reshape(-1)[order][np.searchsorted(total, share)]


@pytest.mark.parametrize("shares_kept", [(0.6, 0.9), (0.9, 0.5), (0.8, 0.98)])
def test_influence_scores_and_pruning_are_those_of_circuit_tracer(shares_kept: tuple[float, float]) -> None:
    found = graph(with_features(("saelens-topk", "decoder.1.output")), mass=0.9)
    kinds = np.array([node.kind for node in found.nodes])
    shares = normal(dense(found))
    influence = summed(shares, found.probabilities)
    np.testing.assert_allclose(found.influence, influence, atol=1e-12)
    tokens, errors = influence[kinds == "embedding"].sum(), influence[kinds == "error"].sum()
    assert found.replacement == pytest.approx(tokens / (tokens + errors))
    reached = influence + found.probabilities
    explained = 1.0 - shares[:, kinds == "error"].sum(axis=1)
    assert found.completeness == pytest.approx((explained * reached).sum() / reached.sum())

    always = np.isin(kinds, ("embedding", "logit"))
    kept = enough(influence, shares_kept[0]) | always
    left = np.where(kept[:, None] & kept, dense(found), 0.0)
    scores = normal(left) * (summed(normal(left), found.probabilities) + found.probabilities)[:, None]
    there = enough(scores, shares_kept[1]) & (scores > 0.0)
    for _ in found.nodes:
        kept &= (there.any(axis=0) & (there.any(axis=1) | (kinds == "error"))) | always
        there &= kept[:, None] & kept
    pruned = found.prune(*shares_kept)
    assert pruned.nodes == tuple(node for node, stays in zip(found.nodes, kept, strict=True) if stays)
    np.testing.assert_array_equal(dense(pruned) != 0.0, there[kept][:, kept])
    assert 4 < len(pruned.nodes) < len(found.nodes)
    assert (pruned.replacement, pruned.completeness) == (found.replacement, found.completeness)
    assert off(found.prune(1.0, 1.0)) < 1e-9


def test_edges_are_read_from_the_answer_back_the_strongest_first() -> None:
    found = graph(trace_of("gpt2"), mass=0.5).prune()
    edges = found.edges
    assert edges[0].target.kind == "logit"
    known = {node for node in found.nodes if node.kind == "logit"}
    for before, edge in zip([None, *edges], edges, strict=False):
        assert edge.target in known
        if before is not None and before.target is edge.target:
            assert abs(before.weight) >= abs(edge.weight)
        known.add(edge.source)
    rows = found.rows()
    assert len(rows) == len(edges) == int((found.weights != 0.0).sum())
    assert {type(value) for row in rows for value in row.values()} <= {str, int, float, type(None)}


def test_what_is_edited_is_a_constant_and_the_rest_is_followed() -> None:
    trace = with_features(("saelens-topk", "decoder.0.output"))
    strongest = int(trace["decoder.0.output.features"][-1].argmax())
    edits = [
        Scale("decoder.0.output.features", 3.0, columns=strongest),
        Set("1.self_attention.context", 0.5, heads=1),
        Set("1.output", 2.0, rows=3, columns=range(4)),
    ]
    for heads in (True, False):
        plain, found = (graph(each, 2, heads=heads) for each in (trace, trace.edited(edits)))
        assert off(found) < 1e-9
        assert found.sums[-1] != pytest.approx(plain.sums[-1], abs=1e-3)
    cut = graph(trace.edited([Set("1.self_attention.context", 0.5)]), 2)
    for found, others in ((plain, True), (cut, False)):
        assert any(edge.source.token < 3 for edge in found.edges if edge.target.kind == "logit") == others


def test_work_is_reported_and_can_be_ended_and_the_most_influential_are_followed_first() -> None:
    trace = trace_of("gpt2")
    whole, some = graph(trace), graph(trace, most=5)
    assert len(some.followed) == 6
    assert off(some) < 1e-9
    followed = [whole.nodes[i] for i in whole.followed if whole.nodes[i].kind != "logit"]
    likeliest = sorted(followed, key=lambda node: -whole.influence[whole.nodes.index(node)])
    assert likeliest[0] in {some.nodes[i] for i in some.followed}
    ended(lambda report: graph(trace_of("gpt2"), report=report), lambda said: said.startswith("graph · 1 of"))


def test_a_text_of_one_token_an_answer_without_any_probability_and_labels_have_graphs() -> None:
    trace = Model.load("story").trace("Once")
    assert len(graph(trace).prune().edges) > 1
    sure = trace.edited([Set("output.logits", 1e4, columns=3)])
    assert sure["output.probabilities"][0, 5] == 0.0
    assert len(graph(sure, 5).prune().edges) > 1
    with pytest.raises(InputError, match="not finite"):
        graph(trace.edited([Set("1.output", np.inf, columns=3)]))
    # labels
    folder = next(iter(sorted((Path(__file__).parent.parent / "classifiers").glob("*/config.json")))).parent
    model = in_float64(folder)
    found = graph(model.trace(ids=IDS), 1)
    assert off(found) < 1e-9
    logits = model.trace(ids=IDS)["output.logits"]
    assert found.nodes[-1].value == pytest.approx(logits.reshape(-1, logits.shape[-1])[found.nodes[-1].token, 1])
    assert found.word(found.nodes[-1]) == model.trace(ids=IDS).program.step("output.logits").axes[-1].words[1]


@pytest.mark.parametrize(("ids", "mask"), [([5, 6, 7, 0, 0], [1, 1, 1, 0, 0]), ([0, 0, 5, 6, 7], [0, 0, 1, 1, 1])])
def test_padding_is_no_node(ids: list[int], mask: list[int]) -> None:
    model = in_float64("copy")
    plain, padded = graph(model.trace(ids=[5, 6, 7])), graph(model.trace(ids=ids, mask=mask))
    assert {node.token for node in padded.nodes} == set(np.flatnonzero(mask).tolist())
    if not mask[-1]:
        assert list(map(str, padded.nodes)) == list(map(str, plain.nodes))
        np.testing.assert_allclose(padded.influence, plain.influence, atol=1e-9)


def test_what_cannot_be_is_refused_in_a_line() -> None:
    trace, story = trace_of("gpt2"), Model.load("story")
    refused = {
        "there is no token 99999": lambda: graph(trace, 99999),
        "there is no position 7": lambda: graph(trace, position=7),
        "no logits": lambda: graph(Model.load(REFERENCES.parent / "sentences" / "bert").trace(ids=IDS)),
        "single sentence": lambda: graph(story.trace(["The fox", "A crow"])),
        "from 0 to 1": lambda: graph(trace).prune(1.5),
        "mass is above 0": lambda: graph(trace, mass=2.0),
        "at most 1, neurons": lambda: graph(trace, mass=0.0),
        "targets are IDs": lambda: graph(trace, []),
    }
    for says, call in refused.items():
        with pytest.raises((InputError, UsageError), match=says):
            call()
