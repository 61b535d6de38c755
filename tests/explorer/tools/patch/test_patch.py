"""Patching in the explorer: a step, a head or a row with the values of another sentence."""

from __future__ import annotations

import numpy as np
from driving import NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.patching import PatchScreen
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import Guess

GPT2 = {"model": str(REFERENCES / "gpt2"), "text": "the waves crashed"}
OUTPUT = "decoder.0.feed_forward.residual"
CONTEXT = "decoder.0.self_attention.context"
OTHER = "the crashed waves"


async def ask(explorer: Explorer, text: str) -> None:
    explorer.app.clear_notifications()
    await explorer.press("P")
    assert isinstance(explorer.app.screen, PatchScreen)
    await explorer.write(text)


async def apply(explorer: Explorer) -> None:
    await explorer.press("enter")
    await explorer.until(lambda: explorer.session.edits and explorer.messages)
    await explorer.settled()


def tokens(explorer: Explorer, text: str) -> int:
    return len(explorer.session.model.encode(text).tokens)


async def test_the_whole_step_comes_from_the_other_sentence() -> None:
    async with exploring(SMALL, **GPT2) as explorer:
        base, other = explorer.session, explorer.session.model.trace(OTHER)
        count = tokens(explorer, base.text)
        assert tokens(explorer, OTHER) == count, "this test needs sentences of the same length"
        # a small terminal, and help
        await explorer.go(OUTPUT, 0)
        await ask(explorer, OTHER)
        for text in ("whole step", "8 tokens", "esc leave"):
            assert text in explorer.text
        await explorer.press("f1")
        assert "Patching" in explorer.text
        await explorer.leave("escape", "escape")
        for size, said in ((NARROW, "1 edit"), (WIDE, "from “the crashed waves”")):
            await explorer.resize(*size)
            await explorer.go(OUTPUT, 0)
            await ask(explorer, OTHER)
            assert f"{count} tokens, as many as here" in explorer.text
            await apply(explorer)
            np.testing.assert_array_equal(explorer.session.trace[OUTPUT], other[OUTPUT])
            np.testing.assert_allclose(
                explorer.session.trace["output.logits"], other["output.logits"], atol=1e-5
            )  # everything after the residual stream follows from it
            assert explorer.stop == OUTPUT
            assert explorer.session.overlay.label == "before the edits"
            best = int(other["output.probabilities"][-1].argmax())
            share = float(other["output.probabilities"][-1, best])
            assert f"→ {Guess(base.model.word(best), share)}" in explorer.messages[-1]
            assert said in explorer.text
            await explorer.press("u")
            assert explorer.session is base


async def test_a_sentence_of_another_length_gives_the_common_rows() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        base, other = explorer.session, explorer.session.model.trace("a shore")
        here, there = tokens(explorer, base.text), tokens(explorer, "a shore")
        assert there < here - 1
        await explorer.go(OUTPUT, 0)
        await ask(explorer, "a shore")
        assert f"{there} tokens, here {here}" in explorer.text
        assert f"rows 0 to {there - 1} are patched; {there} to {here - 1} stay as before" in explorer.text
        await apply(explorer)
        values = explorer.session.trace[OUTPUT]
        np.testing.assert_array_equal(values[:there], other[OUTPUT])
        np.testing.assert_array_equal(values[there:], base.trace[OUTPUT][there:])
        await explorer.press("u")
        # a longer one
        other = base.model.trace("against the shore the waves")
        await ask(explorer, "against the shore the waves")
        assert "the common rows are patched" in explorer.text
        await apply(explorer)
        values = explorer.session.trace[OUTPUT]
        np.testing.assert_array_equal(values, other[OUTPUT][: len(values)])
        await explorer.press("u")
        # a hostile one is shown harmlessly
        await explorer.resize(*WIDE)
        await ask(explorer, "a [red]\x1b[31mshore\u202e")
        await apply(explorer)
        assert "\x1b" not in explorer.text
        assert "\u202e" not in explorer.text
        assert "[red]" in explorer.text


async def test_only_the_head_or_the_row_is_patched() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        base, other = explorer.session, explorer.session.model.trace(OTHER)
        for key, part in (("right", np.s_[2]), ("left", np.s_[:, 1])):
            await explorer.go(CONTEXT, 2, 1)
            await ask(explorer, OTHER)
            assert "head 2" in explorer.text
            await explorer.press("tab", key)
            await apply(explorer)
            expected = base.trace[CONTEXT].copy()
            expected[part] = other[CONTEXT][part]
            np.testing.assert_array_equal(explorer.session.trace[CONTEXT], expected)
            await explorer.press("u")


async def test_what_cannot_be_patched_is_said() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        for stop, said in (("tokens", "whole numbers"), ("vocabulary", "go to a step")):
            await explorer.go(stop, 0)
            await explorer.press("P")
            assert said in explorer.messages[-1]
        # while it is typed
        await explorer.go("decoder.0.self_attention.weights", 0, 5)
        await ask(explorer, "a shore")
        assert "the last axis differs" in explorer.text
        await explorer.press("enter")
        assert isinstance(explorer.app.screen, PatchScreen)
        await explorer.write(OTHER)
        assert "the last axis differs" not in explorer.text
        await explorer.press("escape")
        await explorer.go(OUTPUT, 0, 6)
        await ask(explorer, "a shore")
        await explorer.press("tab", "right")
        assert "has no row 6 in both" in explorer.text
        await explorer.press("escape")
        assert not explorer.session.edits


async def test_token_ids_where_the_model_has_no_words() -> None:
    session = open_session(ModelOptions(str(REFERENCES / "vanilla-decoder")), None, (4, 5, 6))
    async with exploring(NARROW, session=session) as explorer:
        assert explorer.session.model.vocabulary is None
        await explorer.go(OUTPUT, 0)
        await ask(explorer, "4 x")
        assert "write token IDs" in explorer.text
        await explorer.write("7 5 4")
        await apply(explorer)
        np.testing.assert_array_equal(explorer.session.trace[OUTPUT], session.model.trace(ids=[7, 5, 4])[OUTPUT])


async def test_the_decoder_keeps_its_own_tokens() -> None:
    session = open_session(ModelOptions(str(REFERENCES / "t5")), None, (5, 9, 12, 7), decoder_ids=(0, 8, 3))
    async with exploring(NARROW, session=session) as explorer:
        other = session.model.trace(ids=session.model.encode("waves").ids, decoder_ids=(0, 8, 3))
        name = "decoder.1.cross_attention.output"
        await explorer.go(name, 0)
        await ask(explorer, "waves")
        await apply(explorer)
        np.testing.assert_array_equal(explorer.session.trace[name], other[name])


async def test_edited_weights_are_edited_in_the_other_sentence_too() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        await explorer.go("decoder.0.feed_forward.hidden.weight", 0)
        await explorer.prompt("e", "3.5")
        other = explorer.session.with_text(OTHER).trace
        assert other.edits
        await explorer.go(OUTPUT, 0)
        await ask(explorer, OTHER)
        await explorer.press("enter")
        await explorer.until(lambda: len(explorer.session.edits) == 2)
        await explorer.settled()
        np.testing.assert_array_equal(explorer.session.trace[OUTPUT], other[OUTPUT])
        await explorer.prompt("slash", "a shore")
        assert [edit.name for edit in explorer.session.edits] == ["decoder.0.feed_forward.hidden.weight"]
