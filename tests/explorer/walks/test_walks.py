"""Same state, same screen: walks at random, and that the oracle notices what is left from before."""

from __future__ import annotations

import pytest

from tests.explorer.walks.walk import Move, moves_of, shortest, walk
from tui_transformer.explorer.main.panes.matrix import ChartPane
from tui_transformer.session.scene import Scene


@pytest.mark.slow
@pytest.mark.parametrize("model", ["question", "slow"])  # `.ci/run` walks through every model
def test_a_walk_ends_on_the_screen_of_a_new_explorer(model: str) -> None:
    outcome = walk(model, 1, moves_of(1, 40), 4)
    assert not outcome.faults, outcome


@pytest.mark.slow
def test_a_pane_that_keeps_what_it_showed_before_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    show = ChartPane.show_scene

    def once(pane: ChartPane, scene: Scene) -> None:
        if pane.chart is None:
            show(pane, scene)

    monkeypatch.setattr(ChartPane, "show_scene", once)
    steps = [Move(size=(160, 45)), Move("0"), *[Move("space")] * 9, Move("backspace"), Move("down"), Move("down")]
    outcome = walk("question", 0, steps, 1)
    assert "the screen is not that of a new explorer:" in outcome.faults
    assert len(shortest(outcome, 12).moves) < len(steps)


@pytest.mark.slow
def test_a_report_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("wrong")

    monkeypatch.setattr(ChartPane, "show_scene", fail)
    outcome = walk("question", 0, [Move(size=(160, 45)), Move("0"), Move("space")], 1)
    assert any(fault.startswith("reported: ") for fault in outcome.faults)
