"""Values that analyses give and take: results are never changed, and what is asked for is checked."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import pytest

from tui_transformer import analysis
from tui_transformer.analysis.attentions import Reader, attentions, chosen_group
from tui_transformer.analysis.metrics import Positions, positions_in
from tui_transformer.errors import InputError
from tui_transformer.model import Model

MODULES = [each.name for each in pkgutil.walk_packages(analysis.__path__, f"{analysis.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_results_are_frozen(name: str) -> None:
    own = (each for each in vars(importlib.import_module(name)).values() if isinstance(each, type))
    for each in own:
        if dataclasses.is_dataclass(each) and each.__module__ == name and each.__dataclass_params__.eq:
            assert each.__dataclass_params__.frozen, each  # what is added up meanwhile has eq=False


def test_a_small_attention_is_read_at_once() -> None:
    trace = Model.load("encoder", device="cpu").trace(ids=[1, 2, 3, 4])
    (attention,) = attentions(trace.program)
    assert [len(rows.queries) for rows in Reader().rows(trace, attention, [range(4)])] == [4]


def test_a_group_of_attention_is_chosen_by_its_words() -> None:
    both = Model.load("encoder-decoder", device="cpu").program(3, 2)
    groups = [chosen_group(both, wanted) for wanted in (None, "decoder", "cross", "encoder")]
    assert groups[0] == groups[3] != groups[1] != groups[2]
    assert "cross" in groups[2]
    with pytest.raises(InputError, match="there is no middle here: choose"):
        chosen_group(both, "middle")


@pytest.mark.parametrize("positions", [range(4, 2), range(2, 2), range(-1, 2), range(2, 7), 6, -7])
def test_positions_that_are_none_are_refused(positions: Positions) -> None:
    with pytest.raises(InputError, match=r"there is no position .*: use 0 to 5"):
        positions_in(6, positions)


def test_positions_count_from_either_end() -> None:
    assert [positions_in(6, each) for each in (0, -1, range(2, 6))] == [range(1), range(5, 6), range(2, 6)]
