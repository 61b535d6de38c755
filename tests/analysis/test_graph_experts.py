"""Attribution graphs through layers of experts, beside plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer import Features, Graph, Model, Scale, Set, Trace, graph
from tui_transformer.analysis.graph_nodes import GraphNode

DICTIONARIES = Path(__file__).parent.parent / "features"
FAMILIES = ("mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "gpt_oss")
IDS = [2, 5, 3, 6, 4]
LAYERS, LAST = 2, 1
FED = f"decoder.{LAST}.feed_forward"


@pytest.fixture(params=FAMILIES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return loaded(request.param).trace(ids=IDS)


def loaded(name: str) -> Model:
    return Model.load(REFERENCES / name, dtype="float64", device="cpu")


def off(found: Graph) -> float:
    """How far the edges into a node and its constants are from what it is, at most."""
    return float(np.abs(found.weights.sum(axis=1) + found.constants - found.sums).max())


def experts(trace: Trace, fed: str = FED) -> Iterator[tuple[str, np.ndarray]]:
    """Every expert of a layer, the shared one last, with its share at every token."""
    shares = trace[f"{fed}.expert_weights"]
    yield from ((f"{fed}.experts.{i}", shares[:, i]) for i in range(shares.shape[1]))
    if f"{fed}.shared.output" in trace.program.by_name:
        yield f"{fed}.shared", trace[f"{fed}.shared.expert_weights"][:, 0]


def of_kind(found: Graph, kind: str, place: str = "") -> list[tuple[int, GraphNode]]:
    """Numbers of nodes, and they, of one kind in a place."""
    return [(i, node) for i, node in enumerate(found.nodes) if node.kind == kind and node.place.startswith(place)]


# In plain NumPy, with all that is not linear held


def normed(trace: Trace, moved: np.ndarray, name: str) -> np.ndarray:
    """What an RMS norm makes of small vectors, its divisor held."""
    step = trace.program.step(name)
    x, weight = (trace[each] for each in step.inputs[:2])
    return moved / np.sqrt((x * x).mean(axis=-1, keepdims=True) + step.op.epsilon) * weight


def written_by_head(trace: Trace, node: GraphNode) -> np.ndarray:
    """A head's row times its rows of W_O; 0 for other tokens."""
    context, matrix = trace[node.step], trace[f"{node.place}.output.weight"]
    width, moved = context.shape[-1], np.zeros((len(IDS), matrix.shape[1]))
    rows = slice(node.number * width, (node.number + 1) * width)
    moved[node.token] = context[node.number, node.token] @ matrix[rows]
    return moved


# Tests


def test_a_layer_of_experts_is_a_node_and_no_error(trace: Trace) -> None:
    found = graph(trace)
    assert {node.kind for node in found.nodes} == {"embedding", "head", "feed_forward", "logit"}
    assert found.completeness == pytest.approx(1.0)
    assert off(found) < 1e-9
    own = of_kind(found, "feed_forward", FED)
    assert [node.value for _, node in own] == pytest.approx([np.linalg.norm(trace[f"{FED}.output"][-1])])


def test_an_edge_into_a_layer_goes_through_all_its_experts_with_gates_and_shares_held(trace: Trace) -> None:
    found, checked = graph(trace), 0
    ((layer, node),) = of_kind(found, "feed_forward", FED)
    (row,) = np.flatnonzero(found.followed == layer)
    for i, source in of_kind(found, "head", f"decoder.{LAST}"):
        read, said = normed(trace, written_by_head(trace, source), f"{FED}.norm"), 0.0
        for place, share in experts(trace):
            hidden = read @ trace[f"{place}.hidden.weight"] * trace[f"{place}.activation"]
            said = said + share[:, None] * (hidden @ trace[f"{place}.output.weight"])
        own = trace[f"{FED}.output"][node.token]
        assert found.weights[row, i] == pytest.approx(said[node.token] @ own / np.linalg.norm(own), abs=1e-9)
        checked += 1
    assert checked > 0


def test_hidden_values_beyond_their_limit_keep_their_share_of_it() -> None:
    trace = loaded("gpt_oss").trace(ids=IDS).edited([Scale("decoder.0.feed_forward.norm", 60.0)])
    hidden = [trace[f"{place}.hidden"] for place, _ in experts(trace, "decoder.0.feed_forward")]
    assert max(np.abs(each).max() for each in hidden) > 7.0
    for options in ({}, {"heads": False}):
        assert off(graph(trace, **options)) < 1e-9


EDITS = (
    Scale("decoder.0.feed_forward.expert_weights", 1.5),
    Set("decoder.0.feed_forward.expert_weights", 0.5, columns=0),
    Set("decoder.0.feed_forward.experts.1.output", 2.0, columns=range(4)),
    Scale("decoder.0.feed_forward.experts.2.gated", 3.0, columns=range(8)),
    Set("decoder.0.feed_forward.output", 2.0, rows=3),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name.removeprefix("decoder.0.feed_forward."))
def test_what_is_edited_in_experts_is_a_constant_and_the_rest_is_followed(trace: Trace, edit: Scale | Set) -> None:
    edited = trace.edited([edit])
    for options in ({}, {"heads": False}):
        assert off(graph(edited, **options)) < 1e-9


PLACES = {
    "decoder.1.feed_forward.norm": "circuit-tracer-relu-skip",
    "decoder.0.feed_forward.output": "saelens-topk",
    "decoder.0.feed_forward.experts.1.output": "saelens-topk",
}


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("at", PLACES)
def test_features_stand_beside_layers_of_experts_and_within_them(at: str, replace: bool) -> None:
    for name in ("mixtral", "qwen2_moe"):
        features = Features.load(DICTIONARIES / PLACES[at])
        trace = loaded(name).with_features(features, at, replace=replace).trace(ids=IDS)
        for options in ({"heads": True}, {"heads": False}):
            found = graph(trace, **options)
            assert off(found) < 1e-9
            assert of_kind(found, "feature", at)


def test_weights_of_experts_that_no_token_chose_are_not_read() -> None:
    for options in ({}, {"heads": False}):
        model = loaded("mixtral")
        trace = model.trace(ids=IDS[:1])
        graph(trace, **options)
        read = {name.split(".output")[0] for name in model.weights.held if name.endswith(".output.weight")}
        chosen = {place for i in range(LAYERS) for place, share in experts(trace, f"decoder.{i}.feed_forward") if share}
        assert {place for place in read if ".experts." in place} == chosen
