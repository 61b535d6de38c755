"""What a backward pass begins at: targets that are typed, or a metric that is chosen, of words that a model writes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer.analysis.input_attribution import gradients_of
from tui_transformer.analysis.metrics import Metric
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.measure import METRIC, TO, TOKENS, read
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.session.open_session import session_of
from tui_transformer.session.view_state import Measure


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
