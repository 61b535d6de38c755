"""Attribution of a logit to what is added up, and of a metric to tokens; and where a backward pass begins."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from driving import NARROW, SMALL, WIDE, exploring
from reference import REFERENCES

from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.input_attribution import (
    InputAttribution,
    gradient_times_input,
    gradients_of,
    integrated_gradients,
)
from tui_transformer.analysis.metrics import Metric
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools import attribution
from tui_transformer.explorer.tools.attribution import InputsScreen, TermsScreen
from tui_transformer.explorer.tools.measure import METRIC, TO, TOKENS, read
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.session.open_session import session_of
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


async def test_the_keys_that_a_screen_names_are_its_own_and_those_in_use_and_not_those_of_a_menu() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5), preferences=Preferences()) as explorer:
        await explorer.press("a", "d")
        assert "w on this screen chooses words" in explorer.text
        screen = explorer.app.screen
        await explorer.press("w")
        assert explorer.app.screen is not screen
        await explorer.leave("escape", "escape")
        port = explorer.parts.port
        port.change(explorer.session.with_measure(Measure("divergence")))
        await explorer.open("inputs")
        assert explorer.messages[-1].endswith(f"has gradient 0: {port.hint('{measure}')} chooses another metric")
        assert "#" not in explorer.messages[-1]


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


async def test_integrated_gradients_that_miss_what_they_should_sum_to_are_not_said_to_sum_to_it(monkeypatch) -> None:
    def missed(*args: Any, **settings: Any) -> InputAttribution:
        found = integrated_gradients(*args, **settings)
        return replace(found, cells=found.cells * 5)

    monkeypatch.setattr(attribution, "integrated_gradients", missed)
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        await explorer.press("&")
        await explorer.front(InputsScreen)
        assert "They sum to" not in explorer.text
        assert "They should sum to" in explorer.text
        assert "too fast" in explorer.text
        await explorer.leave()


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


async def test_targets_are_asked_for_and_checked_while_they_are_typed():
    async with exploring(NARROW) as explorer:
        # leaving them changes nothing
        await explorer.press("B", "escape")
        assert not explorer.session.backward
        assert explorer.stop == "vocabulary"
        await explorer.keys("B")
        assert explorer.focused_input.value == "the waves crashed forcefully against the shore !"
        await explorer.shown(f"waves{TO}waves", "The tokens themselves")
        await explorer.write("the 2 -1")
        await explorer.shown("3 targets for 8 positions")
        await explorer.write("the 2 -1 nothing against the shore !")
        await explorer.shown("'nothing' is not one token of the vocabulary")
        await explorer.write("the 2 -1 99 against the shore !")
        await explorer.shown("there is no token 99: IDs go from 0 to 7")
        await explorer.write("-1 " * 8)
        await explorer.shown("at least one has to be counted")
        await explorer.answer("shore 2 -1 -1 against the shore !")
        assert explorer.session.loss_targets == (6, 2, -1, -1, 5, 1, 6, 7)
        assert explorer.session.backward


async def test_a_decoder_is_asked_for_the_next_token():
    async with exploring(NARROW, model="decoder") as explorer:
        await explorer.keys("B")
        assert explorer.focused_input.value == "waves crashed forcefully against the shore ! -1"
        await explorer.shown(f"!{TO}·", "The next token")


@pytest.mark.parametrize(("model", "asked"), [("question", "question -1 -1 -1"), ("dates", "6")])
async def test_where_a_model_answers_once_its_answer_is_the_target(model, asked):
    async with exploring(NARROW, model=model, decoder_text="" if model == "dates" else None) as explorer:
        await explorer.keys("B")
        await explorer.shown("The model's own answer")
        assert explorer.focused_input.value.startswith(asked)
        await explorer.press("enter")
        assert explorer.session.gradients.loss < 0.1


async def test_the_way_back_begins_at_the_metric_that_is_chosen():
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        loss = explorer.session.gradients.loss
        explorer.parts.port.change(explorer.session.with_measure(Measure("difference", (6, 7))))
        await explorer.press("b")
        trace, last = explorer.session.trace, range(3, 4)
        wanted = gradients_of(trace, Metric("difference", (6, 7)), last)
        assert explorer.session.gradients.loss == wanted.loss != loss
        assert f"{wanted.loss:.4g}" in explorer.text
        words = [explorer.session.model.word(token) for token in (6, 7)]
        assert f"logit of {words[0]} less that of {words[1]}" in explorer.text
        assert "its gradient by the logits: 1 at the first token, −1 at the second" in explorer.text
        await explorer.go("output.logits", 0, 3, 7)
        assert re.search(r"∂ +−1 +of logit of", explorer.text)
        await explorer.go("decoder.1.self_attention.weights", 1, 3, 1)
        gradient = wanted.values["decoder.1.self_attention.weights"]
        np.testing.assert_allclose(
            explorer.session.gradients.values["decoder.1.self_attention.weights"], gradient, atol=1e-6
        )
        await explorer.press("u", "u")
        assert explorer.session.gradients.loss == loss


def test_a_token_that_is_read_and_never_written_is_no_word_of_a_metric():
    folder = str(REFERENCES / "marian-two-vocabularies")
    session = session_of(Model.load(folder), Reading(ids=(3, 5, 7)), ModelOptions(folder))
    values = {METRIC: "logit", TOKENS: str(session.model.target_size - 1)}
    assert read(session, values).tokens == (18,)
    with pytest.raises(InputError, match="no token 20: IDs go from 0 to 18"):
        read(session, values | {TOKENS: "20"})
