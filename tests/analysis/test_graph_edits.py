"""Attribution graphs of edited sentences, and their file: what circuit-tracer's and Neuronpedia's viewers rely on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graphed import FED, SMALL, off, with_features
from reference import IDS, trace_of
from refusing import refuses

from tui_transformer import Add, Features, Graph, Model, Project, Scale, Set, Trace, graph
from tui_transformer.analysis.graph_nodes import GraphNode
from tui_transformer.engine.edits import Change

OPTIONS = ({"heads": True}, {"heads": False}, {"neurons": 3})
VECTOR = np.random.default_rng(4)


MODELS: dict[str, Callable[[], Trace]] = {
    "gpt2": lambda: trace_of("gpt2"),
    "llama": lambda: trace_of("llama"),
    "qwen2_moe": lambda: trace_of("qwen2_moe"),
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
def test_neurons_of_a_layer_that_is_set_lead_nowhere_and_scaled_ones_lead_there_scaled(model, at, place):
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


# The file

REQUIRED = {
    "metadata": {"slug": str, "scan": str, "prompt_tokens": list, "prompt": str, "transcoder_list": list},
    "qParams": {"pinnedIds": list, "supernodes": list, "linkType": str, "clickedId": str, "sg_pos": str},
}
REQUIRED["metadata"]["schema_version"] = int
NODE = dict.fromkeys(("node_id", "layer", "feature_type", "jsNodeId", "clerp"), str) | {"feature": int, "ctx_idx": int}


def test_the_file_is_as_viewers_read_it(tmp_path: Path) -> None:
    story = Model.load("story")
    trace = story.with_features(Features.of(story)).trace("Once there was a small girl")
    pruned = graph(trace, mass=0.9, heads=True).prune()
    pruned.save(tmp_path / "girl.json", {node.number: "a label" for node in pruned.nodes if node.kind == "feature"})
    data = json.loads((tmp_path / "girl.json").read_text(encoding="utf-8"))
    assert set(data) == {"metadata", "qParams", "nodes", "links"}
    for part, keys in REQUIRED.items():
        assert {key: type(data[part][key]) for key in keys} == keys
    assert (data["metadata"]["slug"], data["metadata"]["scan"]) == ("girl", "story")
    assert "".join(data["metadata"]["prompt_tokens"]) == data["metadata"]["prompt"] == "Once there was a small girl"
    ids = [node["node_id"] for node in data["nodes"]]
    assert len(set(ids)) == len(ids) == len(pruned.nodes)
    for node, own in zip(data["nodes"], pruned.nodes, strict=True):
        assert {key: type(node[key]) for key in NODE} == NODE
        assert 0 <= node["ctx_idx"] < len(data["metadata"]["prompt_tokens"])
        if own.kind == "feature":
            assert node["node_id"] == f"1_{own.number}_{own.token}"
            assert node["feature"] == (1 + own.number) * (2 + own.number) // 2 + own.number
            assert (node["feature_type"], node["clerp"]) == ("cross layer transcoder", "a label")
            assert node["activation"] == own.value
    assert len({(node["layer"], node["feature"], node["ctx_idx"]) for node in data["nodes"]}) == len(ids)
    answers = [node for node in data["nodes"] if node["feature_type"] == "logit"]
    assert [node["is_target_logit"] for node in answers].count(True) == 1
    assert all(node["clerp"].startswith('Output "') and 0.0 < node["token_prob"] < 1.0 for node in answers)
    assert all(link["source"] in ids and link["target"] in ids for link in data["links"])
    assert len(data["links"]) == len(pruned.edges)
    refuses("cannot be written", lambda: pruned.save(tmp_path / "nowhere" / "graph.json"))


def test_tokens_of_both_sequences_stand_one_behind_the_other_and_names_are_those_that_viewers_take() -> None:
    found = graph(trace_of("vanilla-encoder-decoder"))
    data = found.to_json("both")
    assert len(data["metadata"]["prompt_tokens"]) == len(IDS) + 3
    at = {node["node_id"]: node["ctx_idx"] for node in data["nodes"]}
    assert len(at) == len(found.nodes)
    assert sorted(place for name, place in at.items() if name.startswith("E_")) == list(range(len(IDS) + 3))
    # names
    data = graph(with_features(("saelens-topk", "decoder.1.output"))).to_json("my graph/#1 ü", {5: "five"})
    assert data["metadata"]["slug"] == "my-graph-1-"
    for node in data["nodes"]:
        number = node["node_id"].split("_")[1]
        if node["feature_type"] == "cross layer transcoder":
            assert node["clerp"] == ("five" if number == "5" else f"decoder.1.output {number} feature")


def numbers_in(paired: int) -> tuple[int, int]:
    """The layer and the number of a feature, as viewers find them in its number."""
    both = int(((8 * paired + 1) ** 0.5 - 1) // 2)
    number = paired - both * (both + 1) // 2
    return both - number, number


IN_VIEWERS = {
    "before and behind all layers": lambda: graph(
        with_features(
            ("saelens-gated", "embedding.output"),
            ("saelens-topk", "decoder.0.output"),
            ("sparsify-topk", "decoder.norm"),
        )
    ),
    "two dictionaries in a layer": lambda: graph(
        with_features(("saelens-topk", "decoder.1.output"), ("circuit-tracer-relu-skip", FED.format(1))), heads=True
    ),
    "cross-layer": lambda: graph(with_features(("circuit-tracer-cross-layer", FED))),
    "neurons and heads": lambda: graph(trace_of("gpt2"), neurons=3, heads=True),
    "encoder and decoder": lambda: graph(trace_of("vanilla-encoder-decoder")),
}


@pytest.mark.parametrize("name", IN_VIEWERS)
def test_viewers_tell_all_nodes_apart_and_draw_them_in_their_layers(name: str) -> None:
    found = IN_VIEWERS[name]()
    nodes = found.to_json()["nodes"]
    for which in (("node_id",), ("layer", "feature", "ctx_idx")):
        assert len({tuple(node[key] for key in which) for node in nodes}) == len(nodes)
    others = [node["jsNodeId"] for node in nodes if node["feature_type"] != "cross layer transcoder"]
    assert len(set(others)) == len(others)
    rows = {"embedding": -1, "logit": 3}
    for node, own in zip(nodes, found.nodes, strict=True):
        row = rows.get(own.kind, own.layer if own.layer is not None else int(own.place == "decoder.norm"))
        assert node["layer"] == ("E" if row < 0 else str(row))
        if own.kind == "feature" and node["feature"] >= 0:
            assert numbers_in(node["feature"]) == (row, own.number)


@pytest.mark.parametrize("shares_kept", [(0.8, 0.98), (0.5, 1.0), (1.0, 1.0)])
def test_viewers_show_every_node_that_pruning_keeps(shares_kept: tuple[float, float]) -> None:
    for trace in (with_features(("saelens-topk", "decoder.1.output")), trace_of("gpt2"), trace_of("llama")):
        data = graph(trace, mass=0.9).prune(*shares_kept).to_json()
        least = data["metadata"]["node_threshold"]
        assert shares_kept[0] <= least <= 1.0
        always = ("embedding", "logit")
        assert all(node["influence"] <= least for node in data["nodes"] if node["feature_type"] not in always)
        assert data["metadata"]["pruning_settings"]["node_threshold"] == shares_kept[0]


def test_viewers_find_the_word_and_the_probability_of_any_logit() -> None:
    shown = {'"': "”", "(p=": "(p =", "Ġ<b>": " <b>", "Ċ": "␊", "ĠâĢľ": " “", "🐋": "🐋"}
    found = replace(graph(trace_of("gpt2"), range(len(shown))), answers=dict(enumerate(shown)))
    nodes = found.to_json()["nodes"]
    for number, word in enumerate(shown.values()):
        ((said, probability),) = (
            (node["clerp"], node["token_prob"])
            for node in nodes
            if (node["feature_type"], node["feature"]) == ("logit", number)
        )
        assert said.split('"')[1] == word
        assert float(said.split("(p=")[1].split(")")[0]) == pytest.approx(probability, abs=6e-4)


def test_what_cannot_be_seen_in_a_word_is_shown_in_the_file_and_one_token_has_a_second_column() -> None:
    found = graph(Model.load("decoder", **SMALL).trace(ids=[3, 5, 4, 6]))
    data = replace(found, words={"decoder": ("one", "\n", "\x1b[31m", "two")}).to_json()
    assert data["metadata"]["prompt_tokens"] == ["one", " ␊", " ␛[31m", " two"]
    data = graph(Model.load("story").trace("Once")).to_json()
    assert data["metadata"]["prompt_tokens"] == ["", "Once"]
    assert data["metadata"]["prompt"] == "Once"
    assert {node["ctx_idx"] for node in data["nodes"]} == {1}


def test_a_graph_is_entered_into_the_list_of_its_folder(tmp_path: Path) -> None:
    found, index = graph(trace_of("gpt2")), tmp_path / "graph-metadata.json"
    found.save(tmp_path / "alone.json")
    assert not index.exists()
    index.write_text('{"graphs": [{"slug": "one"}, {"slug": "two"}], "more": 1}')
    for _ in range(2):
        found.save(tmp_path / "one.json")
    listed = json.loads(index.read_text(encoding="utf-8"))
    assert [each["slug"] for each in listed["graphs"]] == ["two", "one"]
    assert listed["graphs"][1] == json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))["metadata"]
    assert listed["more"] == 1
    for text in ("[]", '{"graphs": 3}', '{"graphs": [3]}', "{"):
        index.write_text(text)
        refuses(r"graph-metadata\.json", lambda: found.save(tmp_path / "one.json"))
        assert index.read_text() == text
