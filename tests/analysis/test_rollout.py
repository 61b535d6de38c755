"""What many layers of attention pass on: rollout, links; and values that analyses give."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from itertools import product
from typing import Any

import numpy as np
import pytest
from ended import ended
from reference import in_float64
from refusing import refuses

from tui_transformer import analysis
from tui_transformer.analysis.attentions import Reader, attentions, chosen_group
from tui_transformer.analysis.measurable import positions_in
from tui_transformer.analysis.rollout import Link, Rollout, links_of, strongest
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.changes import Set
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

# Attention rollout against the formula
IDS = [105, 106, 107, 108, 109]
LINKED = [105, 106, 107, 108, 109, 110]
MODULES = [each.name for each in pkgutil.walk_packages(analysis.__path__, f"{analysis.__name__}.")]


def rollout(name: str, budget: int = 1 << 30, kept: int = 1 << 30) -> tuple[Rollout, list[np.ndarray]]:
    """A rollout, and what the formula gives after every layer."""
    model = in_float64(name, vocabulary="english", layers=4)
    trace = model.trace(ids=IDS, budget=budget)
    steps, rolled, expected = attentions(trace.program), np.eye(len(IDS)), []
    for step in steps:
        mixed = (trace[step.name].mean(axis=0) + np.eye(len(IDS))) / 2
        rolled = mixed / mixed.sum(axis=1, keepdims=True) @ rolled
        expected.append(rolled)
    return Rollout(trace, steps, Reader(), kept), expected


@pytest.mark.parametrize("name", ["encoder", "decoder"])
@pytest.mark.parametrize(("budget", "kept"), [(1 << 30, 1 << 30), (0, 0)])
def test_it_is_the_product_of_the_layers_in_any_order_of_asking(name: str, budget: int, kept: int) -> None:
    rolled, expected = rollout(name, budget, kept)
    for layer in (2, 0, 3, 1, 1):
        np.testing.assert_allclose(rolled.after(layer), expected[layer], rtol=1e-13)
        np.testing.assert_allclose(rolled.after(layer).sum(axis=1), 1.0, rtol=1e-13)


def test_as_many_layers_are_kept_as_there_is_room_for_and_a_causal_token_has_no_share_of_later_ones() -> None:
    rolled, _ = rollout("encoder", kept=2 * len(IDS) ** 2 * 8)
    rolled.after(3)
    assert [layer for layer in range(4) if rolled.holds(layer)] == [2, 3]
    rolled, _ = rollout("decoder")
    assert (np.triu(rolled.after(3), 1) == 0.0).all()
    rolled, _ = rollout("encoder", budget=0)
    ended(lambda report: rolled.after(0, report))


# Strongest links: the same as sorting every weight, without what takes no part
def load(name: str = "encoder") -> Model:
    return Model.load(name, device="cpu", vocabulary="english", layers=3)


def best_links(trace: Trace, top: int, reader: Reader | None = None, **more: Any) -> tuple[Link, ...]:
    steps = attentions(trace.program)
    return strongest((link for step in steps for link in links_of(trace, step, reader or Reader(), top, **more)), top)


@pytest.mark.parametrize("budget", [1 << 30, 0])
def test_they_are_the_largest_weights_of_all_heads_in_order(budget: int) -> None:
    trace = load().trace(ids=LINKED, budget=budget)
    best = best_links(trace, 10)
    everything = np.concatenate([trace[step.name].ravel() for step in attentions(trace.program)])
    assert [link.weight for link in best] == pytest.approx(np.sort(everything)[::-1][:10])
    for link in best:
        assert trace[link.step][link.head, link.query, link.key] == pytest.approx(link.weight)


def test_of_equal_links_those_of_the_first_heads_and_tokens_are_the_strongest_and_nan_is_none() -> None:
    model = Model.load("encoder", device="cpu", layers=1, positions="none")
    trace = model.trace(ids=[5] * 12)  # the same words everywhere: all weights are 1 ÷ 12
    for top in (1, 30, 200):
        best = [(link.head, link.query, link.key) for link in best_links(trace, top)]
        assert best == list(product(range(8), range(12), range(12)))[:top]
    broken = trace.edited([Set("0.self_attention.scores", np.inf, heads=[0, 2])])
    assert [(link.head, link.query, link.key) for link in best_links(broken, 2)] == [(1, 0, 0), (1, 0, 1)]


def test_links_take_no_part_of_padding_or_the_hidden_and_are_all_where_that_is_asked() -> None:
    assert len(best_links(load().trace(ids=LINKED), 10_000)) == 3 * 8 * 36
    assert {link.head for link in best_links(load().trace(ids=LINKED), 20, head=2)} == {2}
    best = best_links(load("decoder").trace(ids=LINKED), 30, itself=False)
    assert all(link.query > link.key for link in best)
    # padding, the hidden, and queries without a choice
    model = load("decoder")
    trace = model.trace(ids=[*LINKED, model.config.pad_id, model.config.pad_id])
    everything = best_links(trace, 10_000)
    assert {link.query for link in everything} == {1, 2, 3, 4, 5}
    assert all(link.key <= link.query for link in everything)
    hidden = best_links(trace, 10_000, Reader(model.vocabulary, Hidden(first=True)))
    assert {link.key for link in hidden} == {1, 2, 3, 4, 5}
    assert {link.query for link in hidden} == {2, 3, 4, 5}


# Values that analyses give and take: results are never changed, and what is asked for is checked
@pytest.mark.parametrize("name", MODULES)
def test_results_are_frozen(name: str) -> None:
    own = (each for each in vars(importlib.import_module(name)).values() if isinstance(each, type))
    for each in own:
        if dataclasses.is_dataclass(each) and each.__module__ == name and each.__dataclass_params__.eq:
            assert each.__dataclass_params__.frozen, each  # what is added up meanwhile has eq=False


def test_positions_count_from_either_end_and_groups_of_attention_are_chosen_by_their_words() -> None:
    assert [positions_in(6, each) for each in (0, -1, range(2, 6))] == [range(1), range(5, 6), range(2, 6)]
    for positions in (range(4, 2), range(2, 2), range(-1, 2), range(2, 7), 6, -7):
        refuses(r"there is no position .*: use 0 to 5", lambda positions=positions: positions_in(6, positions))
    both = Model.load("encoder-decoder", device="cpu").program(3, 2)
    groups = [chosen_group(both, wanted) for wanted in (None, "decoder", "cross", "encoder")]
    assert groups[0] == groups[3] != groups[1] != groups[2]
    assert "cross" in groups[2]
    refuses("there is no middle here: choose", lambda: chosen_group(both, "middle"))
    trace = Model.load("encoder", device="cpu").trace(ids=[1, 2, 3, 4])
    (attention,) = attentions(trace.program)
    assert [len(rows.queries) for rows in Reader().rows(trace, attention, [range(4)])] == [4]
