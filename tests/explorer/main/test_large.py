"""Long inputs: the screen's thread never waits for the worker's."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator

import pytest
from driving import NARROW, WIDE, Explorer, exploring

from tui_transformer.engine.axis import cells
from tui_transformer.engine.computation import Computation
from tui_transformer.engine.parts import Parts
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.main.panes.matrix import MatrixPair
from tui_transformer.session.store import AT_ONCE

FEW_CELLS = 100_000
"""Cells that the screen's thread may ask for at once: far more than a screen has, far fewer than a long step has."""


def token_ids(count: int) -> list[int]:
    return [i % 8 for i in range(count)]


class OnScreenThread:
    """The largest amounts of work that the screen's own thread did at a time, counted and so the same on any computer.

    Attributes:
        operations: Floating-point operations of one step, or of the part of one that was computed.
        cells: Cells of one window that was read.
        elsewhere: As `operations`, on other threads.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.operations = self.cells = self.elsewhere = 0
        run, made, window = Computation.run, Parts.make_piece, Trace.window

        def counted_run(values, step, *rest):
            self._computed(values.flops(step))
            return run(values, step, *rest)

        def counted_part(parts, step, region, values):
            self._computed(parts.program.flops(step) * cells(region) // math.prod(step.shape))
            return made(parts, step, region, values)

        def counted_window(trace, name, region, *rest):
            if threading.current_thread() is threading.main_thread():
                self.cells = max(self.cells, cells(region))
            return window(trace, name, region, *rest)

        monkeypatch.setattr(Computation, "run", counted_run)
        monkeypatch.setattr(Parts, "make_piece", counted_part)
        monkeypatch.setattr(Trace, "window", counted_window)

    def _computed(self, operations: int) -> None:
        if threading.current_thread() is threading.main_thread():
            self.operations = max(self.operations, operations)
        else:
            self.elsewhere = max(self.elsewhere, operations)


class Gate:
    """Holds the worker before its next step until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        self.computed: list[str] = []
        prepare = Trace.prepare

        def held(trace, name, before=None):
            def wait(step):
                if threading.current_thread() is not threading.main_thread():
                    self.reached.set()
                    self.opened.wait(20)
                before(step)
                self.computed.append(step.name)

            return prepare(trace, name, wait if before is not None else None)

        monkeypatch.setattr(Trace, "prepare", held)

    async def hold(self, explorer: Explorer, *keys: str) -> None:
        """Press keys that have something computed, which is held."""
        self.opened.clear()
        self.reached.clear()
        await explorer.keys(*keys)
        await explorer.until(self.reached.is_set)

    async def open(self, explorer: Explorer) -> None:
        """Let go what is held, and wait until it is done."""
        self.opened.set()
        await explorer.settled()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture
async def explorer(gate: Gate) -> AsyncIterator[Explorer]:
    """An explorer of a long input, which is computed when the gate is opened."""
    async with exploring(NARROW, ids=token_ids(512)) as explorer:
        yield explorer


@pytest.mark.parametrize("count", [512, 4096])
async def test_a_long_input_is_stepped_through_with_little_work_between_keys(count, monkeypatch: pytest.MonkeyPatch):
    async with exploring(WIDE, ids=token_ids(count), sizes={"d_ff": 64, "heads": 2}) as explorer:
        work = OnScreenThread(monkeypatch)
        for _ in range(12):
            await explorer.press("space")
        await explorer.press("G", "end", "]", "m", "m", "c", "c", "5", "down", "4")
        await explorer.press("S", "s", "s", "space", "space")
        assert 0 < work.operations <= AT_ONCE < work.elsewhere
        assert 0 < work.cells <= FEW_CELLS
        assert f" {count} × 8" in explorer.text


async def test_stepping_while_it_computes_shows_the_last_stop_only(gate, explorer, monkeypatch):
    explorer.send(*["space"] * 9)
    await explorer.until(gate.reached.is_set)
    scenes = []
    pair = explorer.main.query_one(MatrixPair)
    show = pair.show_scene
    monkeypatch.setattr(pair, "show_scene", lambda scene: (scenes.append(scene), show(scene)))
    explorer.send(*["space"] * 5)
    await explorer.handled()
    await gate.open(explorer)
    assert explorer.place[0] == 15
    drawn = {scene.step.view.name for scene in scenes if scene.step}
    assert drawn == {explorer.stop}  # what comes later of it may draw it again
    assert explorer.scene.view.name == explorer.stop


async def test_what_is_computed_is_said_until_it_is_done_or_ended(gate):
    async with exploring(WIDE, ids=token_ids(512), sizes={"layers": 2}) as explorer:
        await explorer.press("}", "}")
        before = explorer.position
        # esc goes back to what is shown
        await gate.hold(explorer, "}")
        await explorer.keys("escape")
        assert not explorer.app.worker.busy
        await gate.open(explorer)
        assert explorer.position == before
        assert "esc ends" not in explorer.text
        assert "encoder.0.feed_forward.norm" not in gate.computed
        # it is said until it is done
        await gate.hold(explorer, "}")
        await explorer.shown("computing", "esc ends")
        await gate.open(explorer)
        await explorer.until(lambda: "esc ends" not in explorer.text)
        await explorer.settled()
        # what is taken back is no longer said
        await gate.hold(explorer, "}")
        await explorer.shown("computing", "esc ends")
        await explorer.until(lambda: explorer.app.rests and explorer.parts.presenter.settled)  # all is drawn
        explorer.parts.requests.cancel("parts")
        assert explorer.app.settled
        assert "esc ends" not in explorer.text
        gate.opened.set()


@pytest.mark.parametrize("zoom", [(), ("z",)])
async def test_a_narrow_screen_without_a_title_says_what_is_computed_too(zoom, gate, explorer):
    await explorer.press(*zoom)
    await gate.hold(explorer, "}", "}", "}")
    await explorer.until(lambda: "esc ends" in explorer.text.rstrip().splitlines()[-1])
    assert " computing " in explorer.text.rstrip().splitlines()[-1]
    await gate.open(explorer)
    await explorer.until(lambda: "esc ends" not in explorer.text)


async def test_going_back_to_words_while_it_computes_stays_there(gate, explorer):
    await gate.hold(explorer, "}", "}", "}")
    await explorer.keys("v")
    await gate.open(explorer)
    assert explorer.stop == "vocabulary"
    assert explorer.parts.explored.step is None


async def test_the_sentence_is_changed_while_it_computes(gate, explorer):
    await gate.hold(explorer, "}", "}", "}")
    await explorer.keys("/")
    await explorer.write("the shore")
    await explorer.keys("enter")
    await gate.open(explorer)
    assert explorer.session.trace.program.shape("tokens") == (2,)
    assert explorer.scene.view.rows.size == 2
    await explorer.press("u")
    assert explorer.scene.view.rows.size == 512


async def test_keys_of_every_kind_while_it_computes_break_nothing(gate, explorer):
    await explorer.press("}", "}")
    await explorer.keys("}")
    for key in ("down", "right", "]", "c", "m", "5", "enter", "escape", "}", "4", "w", "y", "Y", "2", "down", "u"):
        await explorer.keys(key)
    for key in ("e", "x", "?", ",", "/", "t"):
        await explorer.keys(key, "escape")
    await gate.open(explorer)
    assert explorer.app.is_running


async def test_quitting_while_it_computes_ends_its_thread():
    before = threading.enumerate()
    async with exploring(NARROW, ids=token_ids(4096)) as explorer:
        await explorer.keys("}", "}", "}")
        explorer.send("q")
        await explorer.until(lambda: not explorer.app.is_running)
        assert explorer.app.return_code == 0
    threads = [each for each in threading.enumerate() if each.name.startswith("engine") and each not in before]
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
