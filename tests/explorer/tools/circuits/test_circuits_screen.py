"""Circuits of weights in the explorer: matrices, composition, heads and what is said of them."""

from __future__ import annotations

import numpy as np
from driving import NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer.analysis.circuits import circuits, compositions, words_of
from tui_transformer.explorer.tools.circuits import CircuitsScreen


async def opened(explorer: Explorer) -> CircuitsScreen:
    await explorer.press("O")
    return await explorer.front(CircuitsScreen, lambda screen: screen.shown is not None)


async def test_the_head_of_the_main_screen_is_shown_with_its_numbers() -> None:
    async with exploring(WIDE, model="copy") as explorer:
        heads = list(circuits(explorer.session.trace))
        await explorer.go("decoder.1.self_attention.weights", 2)
        screen = await opened(explorer)
        head = heads[6]
        assert "OV · decoder self-attention layer 1 · head 2" in explorer.text
        assert f"copying score {words_of(explorer.session.trace).copying(head):+.3f}".replace("-", "−") in explorer.text
        assert f"‖OV‖ {np.linalg.norm(head.ov):.3f}" in explorer.text
        largest = max(head.ov_eigenvalues, key=abs)
        assert f"eigenvalues {largest.real:.3g}".replace("-", "−") in explorer.text
        value = f"{head.ov[0, 0]:.4f}".replace("-", "−")
        assert f"row 0 · column 0   {value}" in explorer.text
        await explorer.press("]", "}")
        assert screen.at == 3
        await explorer.press("enter")
        assert (explorer.stop, explorer.position.place.head) == ("decoder.0.self_attention.weights", 3)
        # every size
        screen = await opened(explorer)
        async for _ in explorer.sizes(SMALL, (5, 3), NARROW):
            await explorer.press("f", "right", "minus")
        await explorer.press("f", "f", "f", "f", "f", "f")
        await explorer.until(lambda: screen.shown.kind == screen.kind == screen.kinds[0])
        await explorer.leave()


async def test_every_matrix_says_what_it_is_and_compositions_open_the_later_head() -> None:
    async with exploring(NARROW, model="copy") as explorer:
        heads = list(circuits(explorer.session.trace))
        screen = await opened(explorer)
        said = set()
        for _ in screen.kinds:
            looks, further = (line.strip("│ ") for line in explorer.text.splitlines()[2:4])
            assert looks
            assert "f: " in further or "enter: the later head" in further
            assert "…" not in looks + further
            said.add(looks)
            await explorer.press("f")
        assert len(said) == len(screen.kinds) - 2  # the three compositions have one
        # compositions are a map of heads
        await explorer.press("f", "f", "f")
        await explorer.until(lambda: screen.shown.kind == screen.kind)
        await explorer.settled()
        scores = {(heads.index(path.source), heads.index(path.target)): path.score for path in compositions(heads, "K")}
        assert "composition K" in explorer.text
        assert "one does not come before the other" in explorer.text
        await explorer.press("end", "down")
        assert f"from 0.1 · to 1.3   {scores[1, 7]:.4f}" in explorer.text
        assert f"largest {max(scores.values()):.4f}" in explorer.text
        await explorer.press("enter")
        assert (explorer.stop, explorer.position.place.head) == ("decoder.1.self_attention.weights", 3)


async def test_every_screen_names_the_words_that_the_vocabulary_does_not_know() -> None:
    async with exploring(WIDE, model="question", text="who did qwerty ?") as explorer:
        await explorer.press("H")
        assert "not in the vocabulary: qwerty" in explorer.text.splitlines()[0]
