"""The head that one looks at: it stays while steps are gone through, and shared keys are those of its group."""

from __future__ import annotations

from pathlib import Path

from tests.explorer.driving import WIDE, exploring
from tui_transformer.session.position import head_at

SHARED = Path(__file__).parents[2] / "references" / "llama"
"""Four heads of queries, two of keys."""

ATTENTION = "encoder.0.self_attention"


async def test_the_head_stays_through_steps_that_have_none():
    async with exploring(WIDE, model="question", whole=True, at=f"{ATTENTION}.weights") as explorer:
        await explorer.press("]", "]", "space", "space")
        assert explorer.stop == f"{ATTENTION}.concat"
        assert explorer.position.place.head == 2
        await explorer.press("backspace", "backspace")
        assert (explorer.stop, explorer.scene.view.head) == (f"{ATTENTION}.weights", 2)


async def test_of_shared_keys_those_of_the_group_are_shown_beside_the_queries():
    layer = "decoder.0.self_attention"
    async with exploring(WIDE, model=str(SHARED), text="a dog bites", whole=True, at=f"{layer}.query") as explorer:
        await explorer.press("]")
        program = explorer.session.trace.program
        assert [head_at(program, head, f"{layer}.query", f"{layer}.key") for head in range(4)] == [0, 0, 1, 1]
        assert [head_at(program, head, f"{layer}.key", "") for head in range(2)] == [0, 2]
        assert shown_heads(explorer, f"{layer}.query") == range(1, 2)
        assert shown_heads(explorer, f"{layer}.key_rotated") == shown_heads(explorer, f"{layer}.value") == range(1)
        await explorer.press("space")
        assert (explorer.stop, explorer.scene.view.head) == (f"{layer}.key", 0)
        while explorer.stop != f"{layer}.scores":
            await explorer.press("space")
        assert explorer.scene.view.head == 1


def shown_heads(explorer, step):
    pictures = [picture for _, band in explorer.parts.explored.scene.whole.bands for picture in band]
    return next(picture.heads for picture in pictures if picture.step == step)
