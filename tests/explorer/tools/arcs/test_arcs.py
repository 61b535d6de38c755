"""Arcs: lines between words as thick as the weights, of a head, of all heads, of the rollout, and across."""

from __future__ import annotations

import numpy as np
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, exploring

from tui_transformer.explorer.widgets.arcs import Arcs

DOTS = range(0x2801, 0x2900)


def dots(text: str) -> int:
    return sum(bin(ord(letter) - 0x2800).count("1") for letter in text if ord(letter) in DOTS)


async def test_the_words_stand_on_both_sides_and_larger_weights_are_thicker_lines():
    async with exploring(NARROW, model="question", at=WEIGHTS) as explorer:
        await explorer.press("]", "]")
        async for _ in explorer.sizes(NARROW, MEDIUM, WIDE):
            await explorer.press("Q")
            assert "head 2" in explorer.text
            line = next(text for text in explorer.text.splitlines() if "▸" in text)
            assert "where @0" in line
            last = next(text for text in explorer.text.splitlines() if " ? @8" in text)
            assert ".99" in last
            assert dots(explorer.text) > 50
            # thicker lines
            arcs = explorer.app.screen.query_one(Arcs)
            counts = []
            for weights in (np.zeros((9, 9)), np.eye(9) * 0.15, np.eye(9) * 0.95):
                arcs.show(weights, str, str)
                await explorer.handled()
                counts.append(dots(explorer.text))
            assert counts[0] == 0
            assert 0 < counts[1] < counts[2]
            await explorer.press("escape")


async def test_another_query_head_and_source():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        await explorer.press("Q", "down", "]")
        screen = explorer.app.screen
        assert (screen.wanted.head, screen.arcs.at[0]) == (1, 1)
        head = screen.weights
        await explorer.press("f")
        assert "strongest link of all heads" in explorer.text
        assert (screen.weights >= head - 1e-6).all()
        await explorer.press("f")
        assert "rollout" in explorer.text
        assert np.allclose(screen.weights.sum(axis=1), 1)
        await explorer.press("f", "enter")
        assert explorer.stop == WEIGHTS
        assert explorer.position.place.row == 1
        row = explorer.session.trace[WEIGHTS][1, 1]
        assert explorer.position.place.column == int(row.argmax())
        # from other tools
        for key, source in (("K", "links"), ("R", "rollout")):
            await explorer.press(key, "Q")
            assert explorer.app.screen.wanted.source == source
            await explorer.leave("escape", "escape")


async def test_cross_attention_has_the_target_on_the_left_and_the_source_on_the_right():
    async with exploring(WIDE, model="dates") as explorer:
        await explorer.press("Q")
        screen = explorer.app.screen
        for _ in range(len(screen.every)):
            if screen.wanted.step.own:
                await explorer.press("}")
        assert not screen.wanted.step.own
        assert "cross-attention" in explorer.text
        assert screen.weights.shape == (screen.wanted.step.queries.size, screen.wanted.step.keys.size)
        await explorer.press("f", "f")
        assert screen.wanted.source == "head"


async def test_long_sentences_scroll_and_tiny_terminals_open():
    async with exploring(SMALL, model="question", text="the old sailor hid the map ? " * 12, at=WEIGHTS) as explorer:
        await explorer.press("Q", "G")
        assert explorer.app.screen.arcs.at[0] == 83
        assert "83" in explorer.text
        await explorer.resize(12, 5)
        await explorer.press("k")


async def test_of_other_words_the_strongest_are_seen_and_the_rest_is_faded_or_left_out(monkeypatch):
    weights = np.full((12, 12), 0.05)
    weights[np.arange(12), np.arange(12)] = 0.45

    async def drawn() -> dict[str, int]:
        async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
            await explorer.press("Q")
            arcs = explorer.app.screen.query_one(Arcs)
            arcs.show(weights, str, str)
            await explorer.handled()
            inks = {str(arcs.ink(f"arcs--{name}").color): name for name in ("faded", "quiet", "accent")}
            counts = dict.fromkeys(inks.values(), 0)
            for y in range(arcs.size.height):
                for text, style, _ in arcs.render_line(y):
                    name = inks.get(str(style.color)) if style else None
                    if name is not None:
                        counts[name] += dots(text)
            return counts

    colored = await drawn()
    assert colored["accent"] > 0
    assert colored["quiet"] > 0
    assert colored["faded"] > colored["quiet"]
    monkeypatch.setenv("NO_COLOR", "1")
    plain = await drawn()
    assert plain == {**colored, "faded": 0}
