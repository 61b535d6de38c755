"""Attribution to tokens in the explorer: the numbers of the analysis of the metric that is chosen."""

from __future__ import annotations

import threading
import time

import numpy as np
from driving import NARROW, WIDE, exploring

from tui_transformer.analysis.input_attribution import gradient_times_input, integrated_gradients
from tui_transformer.analysis.metrics import Metric
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools import attribution
from tui_transformer.explorer.tools.attribution import InputsScreen
from tui_transformer.session.view_state import Measure


async def test_a_line_a_token_and_what_they_sum_to() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        explorer.parts.port.change(explorer.session.with_measure(Measure("difference", (6, 7))))
        await explorer.press("&")
        await explorer.until(lambda: isinstance(explorer.app.screen, InputsScreen))
        await explorer.settled()
        trace, metric, last = explorer.session.trace, Metric("difference", (6, 7)), range(3, 4)
        mean = np.asarray(trace["embedding.output"], np.float64).mean(axis=0)
        product = gradient_times_input(trace, metric, last).rows
        integrated = integrated_gradients(trace, metric, last, baseline=mean)
        shown = explorer.text.replace("−", "-")
        for one, other in zip(product, integrated.rows, strict=True):
            line = next(line for line in shown.splitlines() if f"{one:+.4f}" in line)
            assert f"{other:+.4f}" in line
        assert integrated.baseline < 0
        of = f"{integrated.value:.4f} - ({integrated.baseline:.4f}) of the baseline"
        assert f"They sum to {integrated.cells.sum():.4f} = {of}" in shown
        await explorer.press("escape")
        assert explorer.app.screen is explorer.main


class Turn:
    """A job that waits for its turn before it ends, as a run that is saved does."""

    lost = None

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.ended = False

    def end(self) -> None:
        self.ended = self._worker.between(lambda: True).result(timeout=20)


async def test_the_program_ends_though_a_job_waits_for_the_turn_that_a_long_work_has(monkeypatch) -> None:
    begun = threading.Event()

    def attributed(_session, task):
        while True:
            begun.set()
            task.report("1 of 64 points")
            time.sleep(0.01)

    monkeypatch.setattr(attribution, "attributed", attributed)
    async with exploring(NARROW, model="copy", ids=(5, 6, 7, 5)) as explorer:
        job = Turn(explorer.parts.port.worker)
        explorer.app.background.job = job
        explorer.send("&")
        await explorer.until(begun.is_set)
    assert job.ended


async def test_what_has_no_gradient_says_so() -> None:
    async with exploring(NARROW, model="copy", ids=(5, 6, 7)) as explorer:
        explorer.parts.port.change(explorer.session.with_measure(Measure("divergence")))
        await explorer.press("&")
        await explorer.until(lambda: explorer.messages)
        assert "has gradient 0" in explorer.messages[-1]
    async with exploring(NARROW, model="attention") as explorer:
        await explorer.press("&")
        assert "nothing to differentiate" in explorer.messages[-1]
