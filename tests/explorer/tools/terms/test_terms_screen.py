"""Direct logit attribution in the explorer: the terms of the analysis, in order, and the way to their steps."""

from __future__ import annotations

from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.analysis.attribution import attribute
from tui_transformer.explorer.tools.attribution import TermsScreen
from tui_transformer.session.view_state import Measure


async def test_terms_are_those_of_the_analysis_the_largest_first() -> None:
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 5)) as explorer:
        for measure in (None, Measure("logit", (6,)), Measure("difference", (6, 7))):
            explorer.parts.port.change(explorer.session.with_measure(measure))
            await explorer.press("@")
            await explorer.until(lambda: isinstance(explorer.app.screen, TermsScreen))
            await explorer.settled()
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
        await explorer.until(lambda: isinstance(explorer.app.screen, TermsScreen))
        await explorer.settled()
        screen = explorer.app.screen
        few = len(screen.attribution.terms)
        await explorer.press("r")
        assert "embedding" in screen.texts().detail[0]
        await explorer.press("f")
        await explorer.until(lambda: len(screen.attribution.terms) > few)
        await explorer.resize(*SMALL)
        await explorer.press("#")
        assert explorer.app.screen is not screen
        await explorer.press("escape", "escape")
        assert explorer.app.screen is explorer.main


async def test_a_model_without_logits_of_words_says_so() -> None:
    async with exploring(NARROW, model="attention") as explorer:
        await explorer.press("@")
        assert explorer.app.screen is explorer.main
        assert any("no logits of words" in said for said in explorer.messages)
