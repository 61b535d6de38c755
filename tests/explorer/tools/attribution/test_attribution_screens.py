"""Attribution in the explorer: of a logit to what is added up, and of a metric to tokens, as the analysis has them."""

from __future__ import annotations

import threading
import time

import numpy as np
from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.input_attribution import gradient_times_input, integrated_gradients
from tui_transformer.analysis.metrics import Metric
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools import attribution
from tui_transformer.explorer.tools.attribution import InputsScreen, TermsScreen
from tui_transformer.session.view_state import Measure


async def test_terms_are_those_of_the_analysis_the_largest_first() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        for measure in (None, Measure("logit", (6,)), Measure("difference", (6, 7))):
            explorer.parts.port.change(explorer.session.with_measure(measure))
            await explorer.press("@")
            await explorer.front(TermsScreen)
            trace = explorer.session.trace
            wanted = measure.tokens if measure else (int(trace["output.logits"][3].argmax()),)
            terms = sorted(attribute(trace, *wanted).terms, key=lambda term: -abs(term.value))
            lines = [line for line in explorer.text.splitlines() if "decoder." in line or "embedding." in line]
            shown = explorer.text.replace("−", "-")
            assert str(terms[0]) in lines[0]
            assert f"{terms[0].value:+.4f}" in shown
            assert f"{terms[1].value:+.4f}" in shown
            assert f"sum to {attribute(trace, *wanted).logit:.4f}, remainder" in shown
            head = next(term for term in terms if term.kind == "head")
            await explorer.press(*["down"] * terms.index(head), "enter")
            assert explorer.stop == head.name
            assert (explorer.position.place.head, explorer.position.place.row) == (head.number, 3)


async def test_neurons_the_order_of_the_data_and_other_words() -> None:
    async with exploring(NARROW, model="story", text="The fox found a") as explorer:
        await explorer.press("@")
        screen = await explorer.front(TermsScreen)
        few = len(screen.attribution.terms)
        await explorer.press("r")
        assert "embedding" in screen.texts().detail[0]
        await explorer.press("f")
        await explorer.until(lambda: len(screen.attribution.terms) > few)
        await explorer.resize(*SMALL)
        await explorer.press("#")
        assert explorer.app.screen is not screen
        await explorer.leave("escape", "escape")


async def test_the_key_that_a_screen_names_is_its_own_and_not_that_of_a_menu() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5), preferences=Preferences()) as explorer:
        await explorer.press("a", "d")
        assert "w on this screen chooses words" in explorer.text
        screen = explorer.app.screen
        await explorer.press("w")
        assert explorer.app.screen is not screen


async def test_a_line_a_token_and_what_they_sum_to() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        explorer.parts.port.change(explorer.session.with_measure(Measure("difference", (6, 7))))
        await explorer.press("&")
        await explorer.front(InputsScreen)
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
        await explorer.leave()


async def test_where_the_metric_has_no_gradient_the_key_that_is_in_use_is_named() -> None:
    async with exploring(NARROW, model="copy", ids=(5, 6, 7, 5), preferences=Preferences()) as explorer:
        port = explorer.parts.port
        port.change(explorer.session.with_measure(Measure("divergence")))
        await explorer.open("inputs")
        assert explorer.messages[-1].endswith(f"has gradient 0: {port.hint('{measure}')} chooses another metric")
        assert "#" not in explorer.messages[-1]


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
