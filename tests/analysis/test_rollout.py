"""Attention rollout against the formula."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.model import Model

IDS = [105, 106, 107, 108, 109]


def rollout(name: str, budget: int = 1 << 30, kept: int = 1 << 30) -> tuple[Rollout, list[np.ndarray]]:
    """A rollout, and what the formula gives after every layer."""
    model = Model.load(name, device="cpu", dtype="float64", vocabulary="english", layers=4)
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


def test_a_causal_token_has_no_share_of_later_ones() -> None:
    rolled, _ = rollout("decoder")
    assert (np.triu(rolled.after(3), 1) == 0.0).all()


def test_so_many_layers_are_kept_as_there_is_room_for() -> None:
    rolled, _ = rollout("encoder", kept=2 * len(IDS) ** 2 * 8)
    rolled.after(3)
    assert [layer for layer in range(4) if rolled.holds(layer)] == [2, 3]


def test_it_ends_when_it_is_no_longer_wanted() -> None:
    rolled, _ = rollout("encoder", budget=0)

    def end(_: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        rolled.after(0, end)
