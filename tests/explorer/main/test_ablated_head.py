"""A head or a position, ablated where it is shown, without the table of effects."""

from __future__ import annotations

import re

import numpy as np
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer.engine.targets import Target
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.model.options import ModelOptions

GPT2 = {"model": str(REFERENCES / "gpt2"), "text": "the waves crashed against the shore"}
CONTEXT = "decoder.0.self_attention.context"


REMAPPED = Preferences(
    keys={"ablate.head.mean": "M", "ablate.position": "o", "ablate.position.mean": "O"}, classic=True
)
"""Actions that have no key unless they are given one."""


async def test_the_head_of_the_cell_is_ablated() -> None:
    async with exploring(WIDE, preferences=REMAPPED, **GPT2) as explorer:
        before = explorer.session.base[CONTEXT]
        for count, (key, mean) in enumerate((("a", False), ("M", True))):
            await explorer.go("decoder.0.self_attention.weights")
            await explorer.press(*["]"] * (2 - explorer.position.place.head), key)
            await explorer.until(lambda count=count: len(explorer.messages) > count)
            assert explorer.stop == CONTEXT
            assert explorer.session.edits == Target("head", "decoder.0.self_attention", 2).edits(
                explorer.session.trace.program, mean=mean
            )
            expected = np.broadcast_to(before[2].mean(axis=0) if mean else 0.0, before[2].shape)
            np.testing.assert_allclose(explorer.session.trace[CONTEXT][2], expected, atol=1e-6)
            assert f"ablated to {'the mean' if mean else '0'}" in explorer.text
            assert explorer.messages[-1].startswith("answer at position 14")
            await explorer.press("u")
            assert not explorer.session.edits


async def test_the_position_of_the_row_is_ablated_and_the_text_says_what_was_before() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        before = explorer.session.base["decoder.0.output"]
        for key, mean in (("o", np.zeros(32)), ("O", before.mean(axis=0))):
            await explorer.go("decoder.1.self_attention.norm")
            await explorer.press("g", "down", "down", key)
            values = explorer.session.trace["decoder.0.output"]
            np.testing.assert_allclose(values[2], mean, atol=1e-6)
            np.testing.assert_array_equal(np.delete(values, 2, 0), np.delete(before, 2, 0))
            assert explorer.position.place.row == 2
            await explorer.press("u")
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("a")
        await explorer.go("text")
        best = explorer.session.base["output.probabilities"][-1].max()
        assert "before: without the edits" in explorer.text
        assert re.search(rf"^ *│? *before .* {best * 100:.1f} %", explorer.text, re.MULTILINE), explorer.text


async def test_the_position_of_a_source_token_is_in_the_encoder() -> None:
    model = ModelOptions(str(REFERENCES / "t5"))
    session = open_session(model, None, (5, 9, 12, 7), decoder_ids=(0, 8, 3))
    async with exploring(NARROW, session=session, preferences=REMAPPED, at="decoder.0.cross_attention.key") as explorer:
        await explorer.press("down", "o")
        assert [edit.name for edit in explorer.session.edits] == ["embedding.tokens"]
        await explorer.press("u")
        await explorer.go("decoder.0.cross_attention.output")
        await explorer.press("o")
        assert [edit.name for edit in explorer.session.edits] == ["decoder.embedding.tokens"]


async def test_where_there_is_no_head_or_position_it_is_said() -> None:
    async with exploring(NARROW, model=str(REFERENCES / "llama"), ids=(5, 9, 12, 7), preferences=REMAPPED) as explorer:
        await explorer.press("a", "o")
        assert "no head is shown here" in explorer.messages[-2]
        assert "no positions" in explorer.messages[-1]
        await explorer.go("decoder.0.self_attention.key")
        await explorer.press("a")
        assert "heads share these" in explorer.messages[-1]
        assert not explorer.session.edits
        # all of them are in the palette
        titles = {command.title for command in explorer.app.get_system_commands(explorer.main)}
        assert {"Ablate this head (zero)", "Ablate this head (mean)", "Ablate this position (zero)"} <= titles


async def test_what_is_beside_by_choice_stays() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2, at="decoder.0.self_attention.weights") as explorer:
        await explorer.press("d", "enter")
        await explorer.answer("the shore")
        await explorer.until(lambda: explorer.session.comparison is not None)
        await explorer.press("a")
        assert explorer.session.overlay.text == "the shore"
        assert len(explorer.session.edits) == 1
