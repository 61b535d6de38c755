"""A head or a position, ablated where it is shown, without the table of effects."""

from __future__ import annotations

import re

import numpy as np
import pytest
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer.engine.targets import Target
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.session import Session

GPT2 = {"model": str(REFERENCES / "gpt2"), "text": "the waves crashed against the shore"}
CONTEXT = "decoder.0.self_attention.context"


def translating() -> Session:
    """An encoder beside a decoder."""
    model = ModelOptions(str(REFERENCES / "t5"))
    return open_session(model, None, (5, 9, 12, 7), decoder_ids=(0, 8, 3))


REMAPPED = Preferences(
    keys={"ablate.head.mean": "M", "ablate.position": "o", "ablate.position.mean": "O"}, classic=True
)
"""Actions that have no key unless they are given one."""


@pytest.mark.parametrize(("key", "mean"), [("a", False), ("M", True)])
async def test_the_head_of_the_cell_is_ablated(key: str, mean: bool) -> None:
    async with exploring(WIDE, preferences=REMAPPED, **GPT2) as explorer:
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("]", "]", key)
        await explorer.until(lambda: explorer.messages)
        assert explorer.stop == CONTEXT
        assert explorer.session.edits == Target("head", "decoder.0.self_attention", 2).edits(
            explorer.session.trace.program, mean=mean
        )
        values, before = explorer.session.trace[CONTEXT], explorer.session.base[CONTEXT]
        expected = np.broadcast_to(before[2].mean(axis=0) if mean else 0.0, before[2].shape)
        np.testing.assert_allclose(values[2], expected, atol=1e-6)
        assert f"ablated to {'the mean' if mean else '0'}" in explorer.text
        assert explorer.messages[-1].startswith("answer at position 14")
        await explorer.press("u")
        assert not explorer.session.edits


@pytest.mark.parametrize(("key", "mean"), [("o", False), ("O", True)])
async def test_the_position_of_the_row_is_ablated(key: str, mean: bool) -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        await explorer.go("decoder.1.self_attention.norm")
        await explorer.press("down", "down", key)
        await explorer.until(lambda: explorer.messages)
        values, before = (trace["decoder.0.output"] for trace in (explorer.session.trace, explorer.session.base))
        np.testing.assert_allclose(values[2], before.mean(axis=0) if mean else np.zeros(32), atol=1e-6)
        np.testing.assert_array_equal(np.delete(values, 2, 0), np.delete(before, 2, 0))
        assert explorer.position.place.row == 2


async def test_the_position_of_a_source_token_is_in_the_encoder() -> None:
    async with exploring(NARROW, session=translating(), preferences=REMAPPED) as explorer:
        await explorer.go("decoder.0.cross_attention.key")
        await explorer.press("down", "o")
        await explorer.settled()
        assert [edit.name for edit in explorer.session.edits] == ["embedding.tokens"]
        await explorer.press("u")
        await explorer.go("decoder.0.cross_attention.output")
        await explorer.press("o")
        await explorer.settled()
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


async def test_the_text_at_the_end_says_what_it_was_before() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("a")
        await explorer.settled()
        await explorer.go("text")
        before = explorer.session.base["output.probabilities"][-1]
        assert "before: without the edits" in explorer.text
        assert re.search(rf"^ *│? *before .* {before.max() * 100:.1f} %", explorer.text, re.MULTILINE), explorer.text


async def test_what_is_beside_by_choice_stays() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("d", "enter")
        await explorer.answer("the shore")
        await explorer.until(lambda: explorer.session.comparison is not None)
        await explorer.press("a")
        await explorer.settled()
        assert explorer.session.overlay.text == "the shore"
        assert len(explorer.session.edits) == 1


async def test_every_action_is_in_the_palette() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        titles = {command.title for command in explorer.app.get_system_commands(explorer.main)}
        assert {"Ablate this head (zero)", "Ablate this head (mean)", "Ablate this position (zero)"} <= titles
