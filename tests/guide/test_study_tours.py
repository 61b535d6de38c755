"""The statements of the tours that are studies, worked out again: every share, weight and answer that they name."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from test_trained_tours import ablated, model, trace

from tui_transformer import Metric, active_features, feature_words, graph, paths
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.guide.texts import Stop, tour, tour_model
from tui_transformer.session.edit_format import changes
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import base_of, lecture, suitable


@cache
def stops(name: str) -> dict[str, Stop]:
    return {stop.name: stop for stop in tour(name)}


def at(name: str, stop: str) -> Trace:
    """What a stop shows: its sentence, with what it sets and ablates."""
    own = stops(name)[stop]
    plain = trace(tour_model(name), own.sentence, features=own.features)
    edited = plain.edited(changes(session(name).model, plain.program, own.edits)) if own.edits else plain
    return ablated(edited, *own.ablate) if own.ablate else edited


@cache
def session(name: str) -> Session:
    opened = Session(model(tour_model(name)), "Once")
    return base_of(opened, suitable(opened, name))


def shares(traced: Trace) -> Any:
    return traced["output.probabilities"][-1]


def likeliest(name: str, traced: Trace) -> str:
    return session(name).model.target_word(int(shares(traced).argmax())).strip("Ġ")


def test_a_tour_of_features_needs_a_dictionary_that_comes_with_the_model(tmp_path: Any) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[first]\ntitle = "t"\ntext = "t"\nstep = "tokens"\nfeatures = true\n')
    with pytest.raises(InputError, match=r"\[first\] features: no dictionary of features comes with copy"):
        suitable(session("copy-paths"), str(own))
    assert lecture(str(own)).stops[0].features


def test_induction_goes_by_the_head_of_layer_0_and_by_keys() -> None:
    asked, other, without = (at("copy-paths", stop) for stop in ("asked", "other", "without"))
    weights = "decoder.1.self_attention.weights"
    assert (other[weights][:, -1, 4] < 0.01).all()
    assert without[weights][2, -1, 4] < 0.01
    assert f"{shares(without)[5]:.2f}" == "0.43"
    found = paths(asked, other, ["embedding", "head:0.self_attention"], ["query", "key", "value"],
                  Metric("log-probability", (5,)))  # fmt: skip
    rows = sorted(found.rows(), key=lambda row: -row["share"])
    assert [row["receiver"].partition(".")[2] for row in rows[:3]] == [
        "0.self_attention:3", "1.self_attention:2", "1.self_attention:1",
    ]  # fmt: skip
    assert round(rows[0]["share"], 1) == 0.5
    assert [row["receiver"].partition(":")[0] for row in rows[1:3]] == ["key", "key"]


def test_a_name_is_moved_by_one_head() -> None:
    asked, other, without, read = (at("story-name", stop) for stop in ("asked", "other", "without", "read"))
    head = "decoder.2.self_attention.weights"
    assert other[head][0, -1, 12] > 0.99
    assert shares(without)[420] < 0.01
    assert likeliest("story-name", without) in ("Otto", "Tom", "Leo", "Max", "Ben")
    assert f"{shares(read)[420]:.2f}" == "0.86"
    metric = Metric("difference", (420, 423))
    readers = ["query:2.self_attention:0", "value:2.self_attention:0"]
    rows = paths(asked, other, ["embedding", "head", "feed_forward"], readers, metric).rows()
    value = {row["sender"]: row["share"] for row in rows if row["receiver"].startswith("value")}
    query = [row["share"] for row in rows if row["receiver"].startswith("query")]
    assert np.allclose(query, 0.0, atol=0.01)
    assert 0.4 < value["feed_forward:decoder.0.feed_forward"] < 0.55
    assert 0.3 < value["feed_forward:decoder.1.feed_forward"] < 0.4
    assert 0.15 < value["embedding:decoder"] < 0.25


def test_a_feature_stands_for_an_animal() -> None:
    names = ("asked", "without", "stronger", "another")
    asked, without, stronger, another = (at("story-feature", name) for name in names)
    features = asked["decoder.1.output.features"]
    assert int((features[-1] != 0).sum()) == 8
    assert int(features[-1].argmax()) == 94
    assert not features[:-1, 94].any()
    error = np.linalg.norm(asked["decoder.1.output.error"][-1]) / np.linalg.norm(asked["decoder.1.output"][-1])
    assert round(float(error), 1) == 0.1
    assert likeliest("story-feature", without) == "mouse"
    assert f"{shares(without).max():.2f}" == "0.31"
    assert likeliest("story-feature", stronger) == "goat"
    assert f"{shares(stronger).max():.2f}" == "0.21"
    assert likeliest("story-feature", another) == "hen"
    assert f"{shares(another).max():.2f}" == "0.17"
    last = list(active_features(asked, top=1))[-1]
    (words,) = next(feature_words(asked, [last]))
    word = session("story-feature").model.target_word
    assert {word(int(i)).strip("Ġ") for i in words.argsort()[::-1][:3]} == {"goat", "cat", "duck"}


def test_a_graph_leads_back_to_the_word() -> None:
    asked, hypothesis = (at("story-graph", stop) for stop in ("asked", "hypothesis"))
    found = graph(asked)
    into = [edge for edge in found.edges if edge.target.kind == "logit"]
    assert [found.called(edge.source) for edge in into[:2]] == ["2 feed_forward", "1 feature 347"]
    by = {edge.source.number for edge in found.edges if edge.target == into[0].source and edge.source.token == 12}
    assert {347, 465} <= by
    features = asked["decoder.1.output.features"]
    assert features[12, 347] > 0 == features[-1, 347]
    below = [found.called(edge.source) for edge in found.edges if str(edge.target) == "feature:decoder.1.output:347@12"]
    assert below[:2] == ["token", "0 feed_forward"]
    assert shares(hypothesis)[420] < 0.01
    assert likeliest("story-graph", hypothesis) == "Leo"
