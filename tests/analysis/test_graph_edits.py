"""Attribution graphs of edited sentences: what an edit leaves is followed, what it adds is a constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphed import FED, IDS, off, reference, with_features

from tui_transformer import Add, Graph, Project, Scale, Set, Trace, graph
from tui_transformer.analysis.graph_nodes import GraphNode
from tui_transformer.engine.edits import Change

OPTIONS = ({"heads": True}, {"heads": False}, {"neurons": 3})
VECTOR = np.random.default_rng(4)


MODELS: dict[str, Callable[[], Trace]] = {
    "gpt2": lambda: reference("gpt2"),
    "llama": lambda: reference("llama"),
    "qwen2_moe": lambda: reference("qwen2_moe"),
    "features": lambda: with_features(("saelens-topk", "decoder.0.output")),
    "features alone": lambda: with_features(("saelens-topk", "decoder.0.output"), replace=True),
    "cross-layer": lambda: with_features(("circuit-tracer-cross-layer", FED)),
}
EDITED = {
    "gpt2": ("0.feed_forward.hidden", "0.feed_forward.activation", "0.feed_forward.output", "output.logits"),
    "llama": ("0.feed_forward.hidden", "1.feed_forward.gated", "1.self_attention.context", "output.logits"),
    "qwen2_moe": (
        *("0.feed_forward.experts.2.hidden", "0.feed_forward.shared.hidden", "1.feed_forward.experts.1.gated"),
        *("1.feed_forward.experts.1.output", "0.feed_forward.shared.output", "1.feed_forward.output"),
        "decoder.1.output",
    ),
    "features": (
        *("decoder.0.output.pre_activations", "decoder.0.output.features", "decoder.0.output.reconstruction"),
        *("decoder.0.output.error", "decoder.0.output.change", "decoder.0.output", "0.self_attention.context"),
    ),
    "features alone": ("decoder.0.output.pre_activations", "decoder.0.output.features"),
    "cross-layer": (
        *("decoder.0.feed_forward.norm.pre_activations", "decoder.0.feed_forward.norm.features"),
        "decoder.1.feed_forward.norm.pre_activations",
    ),
}  # fmt: skip
KINDS: dict[str, Callable[[str, int], list[Change]]] = {
    "set": lambda name, columns: [Set(name, VECTOR.normal(size=columns))],
    "add": lambda name, columns: [Add(name, VECTOR.normal(size=columns))],
    "several": lambda name, columns: [
        Scale(name, 2.0, rows=range(1, 3)), Project(name, VECTOR.normal(size=columns)), Set(name, 0.3, columns=0),
    ],
}  # fmt: skip
PLACES = [(model, at) for model, names in EDITED.items() for at in names]


def followed(found: Graph, kind: str, place: str = "") -> list[tuple[int, GraphNode]]:
    """Rows of nodes of a kind in a place, and the nodes."""
    nodes = ((row, found.nodes[index]) for row, index in enumerate(found.followed))
    return [(row, node) for row, node in nodes if node.kind == kind and node.place.startswith(place)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "at"), PLACES)
def test_edges_and_constants_sum_to_what_a_node_is_whatever_is_edited(model: str, at: str, kind: str) -> None:
    trace = MODELS[model]()
    step = trace.program.step(at)
    edited = trace.edited(KINDS[kind](step.name, step.shape[-1]))
    for options in OPTIONS:
        assert off(graph(edited, **options)) < 1e-9


SET = (
    ("gpt2", "decoder.0.feed_forward.hidden", "neuron"),
    ("gpt2", "decoder.0.feed_forward.activation", "neuron"),
    ("llama", "decoder.1.feed_forward.gated", "neuron"),
    ("qwen2_moe", "decoder.1.feed_forward.experts.1.hidden", "neuron"),
    ("qwen2_moe", "decoder.1.feed_forward.shared.gated", "neuron"),
    ("features", "decoder.0.output.pre_activations", "feature"),
    ("features", "decoder.0.output.features", "feature"),
    ("gpt2", "decoder.1.self_attention.context", "head"),
    ("gpt2", "decoder.1.feed_forward.output", "feed_forward"),
    ("gpt2", "output.logits", "logit"),
)


@pytest.mark.parametrize(("model", "at", "kind"), SET)
def test_nothing_leads_to_what_is_set_and_its_value_is_the_constant(model: str, at: str, kind: str) -> None:
    trace = MODELS[model]()
    values = np.random.default_rng(5).normal(size=trace.program.shape(at)[-1])
    edited = trace.edited([Set(at, values)])
    found, plain = (graph(each, 3, heads=True, neurons=6 * (kind == "neuron")) for each in (edited, trace))
    place = at.rpartition(".")[0] if kind != "logit" else "output"
    rows = followed(found, kind, place)
    assert rows
    assert np.abs(plain.weights[[row for row, _ in followed(plain, kind, place)]]).max() > 0.01
    for row, node in rows:
        assert not found.weights[row].any()
        wanted = edited[at][node.token, node.number] if kind in ("neuron", "feature") else node.value
        assert found.constants[row] == pytest.approx(wanted, abs=1e-12)
        assert found.sums[row] == pytest.approx(wanted, abs=1e-12)


def test_what_is_scaled_reads_the_same_and_writes_more() -> None:
    trace = with_features(("saelens-topk", "decoder.0.output"))
    edited = trace.edited([Scale("decoder.0.output.features", 3.0)])
    plain, found = (graph(each, 2, heads=True) for each in (trace, edited))
    before = {node: row for row, node in followed(plain, "feature")}
    now = followed(found, "feature")
    assert now
    for row, node in now:
        (same,) = (each for each in before if str(each) == str(node))
        assert node.value == pytest.approx(3.0 * same.value)
        assert found.sums[row] == pytest.approx(plain.sums[before[same]])


CUT = (
    ("gpt2", "decoder.1.feed_forward.output", "decoder.1.feed_forward"),
    ("qwen2_moe", "decoder.1.feed_forward.output", "decoder.1.feed_forward"),
    ("qwen2_moe", "decoder.1.feed_forward.shared.output", "decoder.1.feed_forward.shared"),
)


@pytest.mark.parametrize(("model", "at", "place"), CUT)
def test_neurons_of_a_layer_that_is_set_lead_nowhere_and_scaled_ones_lead_there_scaled(
    model: str, at: str, place: str
) -> None:
    trace = MODELS[model]()
    width = trace.program.shape(at)[-1]

    def edges(edit: Change | None) -> dict[str, float]:
        found = graph(trace if edit is None else trace.edited([edit]), 3, neurons=8)
        (row,) = (row for row, _ in followed(found, "logit"))
        nodes = zip(found.nodes, found.weights[row], strict=True)
        return {
            str(node): float(edge) for node, edge in nodes if node.kind == "neuron" and node.place.startswith(place)
        }

    assert edges(None)
    assert not edges(Set(at, VECTOR.normal(size=width)))
    last = edges(Set(at, 0.0, rows=range(len(IDS) - 1)))
    assert set(last) == {name for name in edges(None) if name.endswith(f"@{len(IDS) - 1}")}
    assert max(map(abs, edges(Scale(at, 1e-6)).values())) < 1e-3 * max(map(abs, edges(None).values()))


def test_what_a_direction_is_taken_out_of_no_longer_has_what_neurons_write_along_it() -> None:
    trace = MODELS["gpt2"]()
    fed = "decoder.1.feed_forward"
    found = graph(trace.edited([Project(f"{fed}.output", trace[f"{fed}.output.weight"][7])]), 3, neurons=10_000)
    (row,) = (row for row, _ in followed(found, "logit"))
    edges = {
        node.number: found.weights[row, i]
        for i, node in enumerate(found.nodes)
        if node.place == fed and node.kind == "neuron"
    }
    assert len(edges) > 10
    assert abs(edges.pop(7, 0.0)) < 1e-12
    assert min(map(abs, edges.values())) > 1e-12
