"""Strongest links: the same as sorting every weight, without what takes no part."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.rollout import Link, Wanted, links
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

IDS = [105, 106, 107, 108, 109, 110]


def load(name: str = "encoder") -> Model:
    return Model.load(name, device="cpu", vocabulary="english", layers=3)


def best_links(trace: Trace, wanted: Wanted, reader: Reader | None = None) -> tuple[Link, ...]:
    return list(links(trace, attentions(trace.program), reader or Reader(), wanted))[-1]


@pytest.mark.parametrize("budget", [1 << 30, 0])
def test_they_are_the_largest_weights_of_all_heads_in_order(budget: int) -> None:
    trace = load().trace(ids=IDS, budget=budget)
    best = best_links(trace, Wanted(10))
    everything = np.concatenate([trace[step.name].ravel() for step in attentions(trace.program)])
    assert [link.weight for link in best] == pytest.approx(np.sort(everything)[::-1][:10])
    for link in best:
        assert trace[link.step][link.head, link.query, link.key] == pytest.approx(link.weight)


def test_more_than_there_are_gives_all() -> None:
    assert len(best_links(load().trace(ids=IDS), Wanted(10_000))) == 3 * 8 * 36


def test_one_head() -> None:
    assert {link.head for link in best_links(load().trace(ids=IDS), Wanted(20, head=2))} == {2}


def test_links_to_oneself_can_be_left_out() -> None:
    best = best_links(load("decoder").trace(ids=IDS), Wanted(30, itself=False))
    assert all(link.query > link.key for link in best)


def test_padding_the_hidden_and_queries_without_a_choice_take_no_part() -> None:
    model = load("decoder")
    trace = model.trace(ids=[*IDS, model.config.pad_id, model.config.pad_id])
    everything = best_links(trace, Wanted(10_000))
    assert {link.query for link in everything} == {1, 2, 3, 4, 5}
    assert all(link.key <= link.query for link in everything)
    hidden = best_links(trace, Wanted(10_000), Reader(model.vocabulary, Hidden(first=True)))
    assert {link.key for link in hidden} == {1, 2, 3, 4, 5}
    assert {link.query for link in hidden} == {2, 3, 4, 5}


def test_after_every_layer_there_is_a_list() -> None:
    trace = load().trace(ids=IDS)
    sofar = list(links(trace, attentions(trace.program), Reader(), Wanted(5)))
    assert len(sofar) == 3
    assert {link.layer for link in sofar[0]} == {0}
