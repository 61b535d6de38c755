"""Edits that are typed: the notation of `--edit`, by e."""

from __future__ import annotations

import numpy as np
import pytest
from driving import WIDE, exploring

TYPED = {
    "+= 0.5": (lambda old: old + 0.5, "+ 0.5"),
    "*= 2": (lambda old: old * 2, "× 2"),
    "-=.25": (lambda old: old - 0.25, "+ −0.25"),
    "= 3": (lambda old: 3.0, "→ 3"),
}


async def test_an_operation_is_made_in_the_cell_under_the_cursor():
    async with exploring(WIDE, at="embedding.output") as explorer:
        await explorer.press("down", "right")
        old = explorer.session.trace["embedding.output"]
        for typed, (how, said) in TYPED.items():
            await explorer.prompt("e", typed)
            new = explorer.session.trace["embedding.output"]
            assert new[1, 1] == pytest.approx(how(old[1, 1]), rel=1e-6)
            assert (new != old).sum() == 1
            assert f"row 1 column 1 {said}" in explorer.text
            assert explorer.scene.view.edited == ((range(1, 2), range(1, 2)),)
            await explorer.press("u")


async def test_any_step_is_edited_as_with_the_option_and_operations_add_up():
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 8, 5)) as explorer:
        base = explorer.session.trace
        name = base.program.named("0.output")
        for typed in ("0.output[2:4] += 1", "0.output[2:4] += 1", "1.self_attention.context[3] = mean"):
            await explorer.prompt("e", typed)
        now = explorer.session.trace
        np.testing.assert_allclose(now[name][2:4], base[name][2:4] + 2, atol=1e-6)
        assert np.ptp(now["1.self_attention.context"][3], axis=0).max() < 1e-6
        assert "3 edits, last decoder.1.self_attention head 3 → mean" in explorer.text
        assert explorer.stop == "decoder.1.self_attention.context"
        await explorer.press("u", "u", "u")
        assert explorer.session.edits == ()
        await explorer.press("e")
        for bad in ("0.output[9] = 0", "nothing = 1", "0.output = ", "0.output = [1]", "0.output[0,0,0] = 1"):
            await explorer.answer(bad)
            assert explorer.app.screen is not explorer.main
            assert explorer.app.screen.query_one("#problem").visual.plain


async def test_means_of_texts_are_read_by_the_worker_and_stay_for_other_sentences():
    async with exploring(WIDE, model="story", text="The fox found") as explorer:
        trace = explorer.session.model.trace("a shell")
        name = trace.program.named("0.output")
        await explorer.prompt("e", "0.output += 2*'a shell'")
        await explorer.prompt("/", "A crow went home .")
        session = explorer.session
        wanted = session.base[name] + 2 * trace[name].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(session.trace[name], wanted, atol=1e-5)
        assert f"{name} + 2 × 'a shell'" in explorer.text
