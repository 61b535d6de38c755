"""Attribution graphs of experts: neurons of those that were chosen, weighted with their shares, beside plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from graphed import DICTIONARIES, off
from reference import IDS, in_float64

from tui_transformer import Features, Graph, Scale, Set, Trace, graph
from tui_transformer.analysis.graph_nodes import GraphNode

FAMILIES = ("mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "gpt_oss")
LAYERS, LAST = 2, 1
FED = f"decoder.{LAST}.feed_forward"
ALL = 10_000
"""More neurons than there are."""
KEYS = (lambda node: node["node_id"], lambda node: (node["layer"], node["feature"], node["ctx_idx"]))
"""By what viewers tell nodes apart."""


@pytest.fixture(params=FAMILIES)
def trace(request: pytest.FixtureRequest) -> Trace:
    return in_float64(request.param).trace(ids=IDS)


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


def written_by_neuron(trace: Trace, node: GraphNode) -> np.ndarray:
    """Share · activation · row of the expert's second matrix."""
    share = dict(experts(trace, node.place.split(".feed_forward")[0] + ".feed_forward"))[node.place][node.token]
    return share * node.value * trace[f"{node.place}.output.weight"][node.number]


def logit_of(trace: Trace, moved: np.ndarray, row: int, token: int) -> float:
    """The logit of a small vector that is added to the last layer's output, less the mean of all."""
    table = trace[trace.program.step("output.logits").inputs[1]]
    table = table if table.shape[0] == moved.shape[-1] else table.T
    return float(normed(trace, moved, "decoder.norm")[row] @ (table[:, token] - table.mean(axis=1)))


# Tests


def test_a_layer_of_experts_is_a_node_and_all_neurons_leave_the_biases_of_their_experts(trace: Trace) -> None:
    found = graph(trace)
    assert {node.kind for node in found.nodes} == {"embedding", "head", "feed_forward", "logit"}
    assert found.completeness == pytest.approx(1.0)
    assert off(found) < 1e-9
    own = of_kind(found, "feed_forward", FED)
    assert [node.value for _, node in own] == pytest.approx([np.linalg.norm(trace[f"{FED}.output"][-1])])
    rest = of_kind(graph(trace, neurons=ALL), "error", FED)
    wanted = np.zeros(trace.program.shape(f"{FED}.output"))
    if f"{FED}.experts.0.output.bias" in trace.program.weights:
        wanted += sum(share[:, None] * trace[f"{place}.output.bias"] for place, share in experts(trace))
    assert rest or not wanted.any()
    for _, node in rest:
        assert node.value == pytest.approx(np.linalg.norm(wanted[node.token]), abs=1e-12)


def test_the_edges_into_every_neuron_that_was_chosen_sum_to_its_pre_activation(trace: Trace) -> None:
    found = graph(trace, neurons=ALL)
    assert off(found) < 1e-9
    sums = {int(node): row for node, row in zip(found.followed, found.sums, strict=True)}
    for fed in (f"decoder.{i}.feed_forward" for i in range(LAYERS - 1)):
        active = 0
        for place, share in experts(trace, fed):
            neurons = of_kind(found, "neuron", f"{place}")
            assert {node.token for _, node in neurons} <= set(np.flatnonzero(share).tolist())
            active += np.count_nonzero(trace[f"{place}.gated"])
            for i, node in neurons:
                assert node.place == place
                assert node.value == trace[node.step][node.cell]
                assert sums[i] == pytest.approx(trace[f"{place}.hidden"][node.token, node.number], abs=1e-12)
        assert len(of_kind(found, "neuron", fed)) == active


def test_the_neurons_are_the_strongest_of_all_experts_of_their_token(trace: Trace) -> None:
    fed, count = "decoder.0.feed_forward", 4
    found = {(node.place, node.token, node.number) for _, node in of_kind(graph(trace, neurons=count), "neuron", fed)}
    for token in {token for _, token, _ in found}:
        sizes = {
            (place, token, number): float(size)
            for place, share in experts(trace, fed)
            for number, size in enumerate(
                share[token]
                * np.abs(trace[f"{place}.gated"][token])
                * np.linalg.norm(trace[f"{place}.output.weight"], axis=1)
            )
        }
        strongest = sorted(sizes, key=lambda each: -sizes[each])[:count]
        assert {each for each in found if each[1] == token} == set(strongest)


def test_an_edge_from_a_neuron_is_its_share_times_its_activation_times_its_row(trace: Trace) -> None:
    found = graph(trace, neurons=8)
    (row,) = np.flatnonzero([found.nodes[i].kind == "logit" for i in found.followed])
    answer, checked = found.nodes[found.followed[row]], 0
    for i, node in of_kind(found, "neuron", FED):
        moved = np.zeros((len(IDS), trace.program.shape(f"{FED}.output")[1]))
        moved[node.token] = written_by_neuron(trace, node)
        wanted = logit_of(trace, moved, answer.token, answer.number)
        assert found.weights[row, i] == pytest.approx(wanted, abs=1e-9)
        checked += 1
    assert checked == 8


def test_an_edge_into_a_neuron_is_what_its_column_reads(trace: Trace) -> None:
    found, checked = graph(trace, neurons=8), 0
    for row, index in enumerate(found.followed):
        node = found.nodes[index]
        if node.kind != "neuron" or not node.place.startswith(FED):
            continue
        for i, source in of_kind(found, "head", f"decoder.{LAST}"):
            read = normed(trace, written_by_head(trace, source), f"{FED}.norm")[node.token]
            wanted = read @ trace[f"{node.place}.hidden.weight"][:, node.number]
            assert found.weights[row, i] == pytest.approx(wanted, abs=1e-9)
            checked += 1
    assert checked >= 8


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
    for options in ({}, {"heads": False}, {"neurons": 5}):
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
        trace = in_float64(name).with_features(features, at, replace=replace).trace(ids=IDS)
        for options in ({"heads": True}, {"neurons": 4}):
            found = graph(trace, **options)
            assert off(found) < 1e-9
            assert of_kind(found, "feature", at)
            whole = {node.place for _, node in of_kind(found, "feed_forward")}
            assert not options.get("neurons") or whole == ({"decoder.0.feed_forward"} if "experts" in at else set())


def test_weights_of_experts_that_no_token_chose_are_not_read_and_hidden_values_keep_their_share_of_their_limit():
    for options in ({}, {"neurons": 3}):
        model = in_float64("mixtral")
        trace = model.trace(ids=IDS[:1])
        graph(trace, **options)
        read = {name.split(".output")[0] for name in model.weights.held if name.endswith(".output.weight")}
        chosen = {place for i in range(LAYERS) for place, share in experts(trace, f"decoder.{i}.feed_forward") if share}
        assert {place for place in read if ".experts." in place} == chosen
    # beyond the limit
    trace = in_float64("gpt_oss").trace(ids=IDS).edited([Scale("decoder.0.feed_forward.norm", 60.0)])
    hidden = [trace[f"{place}.hidden"] for place, _ in experts(trace, "decoder.0.feed_forward")]
    assert max(np.abs(each).max() for each in hidden) > 7.0
    for options in ({}, {"heads": False}, {"neurons": 5}):
        assert off(graph(trace, **options)) < 1e-9


def test_names_say_the_expert_and_the_neuron_and_numbers_in_files_are_unique() -> None:
    found = graph(in_float64("qwen2_moe").trace(ids=IDS), neurons=ALL)
    named = {str(node): found.called(node) for _, node in of_kind(found, "neuron")}
    assert named["neuron:decoder.0.feed_forward.experts.2:7@1"] == "0 expert 2 neuron 7"
    assert any(said.startswith("1 shared neuron ") for said in named.values())
    assert len({(node.token, found.called(node)) for _, node in of_kind(found, "neuron")}) == len(named)
    data = found.to_json("experts")
    ids, numbers = ([key(node) for node in data["nodes"]] for key in KEYS)
    assert len(set(ids)) == len(set(numbers)) == len(found.nodes)
    assert all(link["source"] in ids and link["target"] in ids for link in data["links"][:500])
    said = {node["clerp"] for node in data["nodes"] if node["feature_type"] == "neuron"}
    assert "decoder.0.feed_forward.experts.2 7 neuron" in said
