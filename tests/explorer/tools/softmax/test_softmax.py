"""The screen that shows the naive and the safe softmax of a row, and breaks the naive one."""

from __future__ import annotations

import numpy as np
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer.explorer.tools.softmax import SoftmaxScreen


async def test_the_row_under_the_cursor_is_shown_both_ways_and_the_naive_one_breaks():
    async with exploring(WIDE, text="the waves crashed") as explorer:
        # a step without a softmax
        await explorer.go("embedding.tokens")
        await explorer.open("softmax")
        assert "there is no softmax here" in explorer.text
        await explorer.go("encoder.0.self_attention.weights")
        for size in (WIDE, NARROW):
            await explorer.resize(*size)
            await explorer.open("softmax")
            assert "Softmax, naive and safe" in explorer.text
            assert "Both are the same to" in explorer.text
            assert "head 0 of 8" in explorer.text
            await explorer.press("!")
            assert "The naive softmax is broken: e^s overflows" in explorer.text
            assert "nan" in explorer.text
            await explorer.press("!")
            assert "Both are the same to" in explorer.text
            await explorer.press("+", "+")
            assert "all scores + 20" in explorer.text
            await explorer.leave()


async def test_a_row_that_is_masked_altogether_is_said_and_stays():
    async with exploring(WIDE, text="the waves") as explorer:
        explorer.main.parts.port.open(SoftmaxScreen("masked", np.array([-np.inf, -np.inf], np.float32), ["a", "b"]))
        await explorer.settled()
        assert "Neither gives shares" in explorer.text
        await explorer.press("!")
        assert "neither softmax gives shares here" in explorer.text
        assert "all scores + 0" in explorer.text


async def test_a_softmax_with_a_sink_is_said_to_have_one():
    async with exploring(WIDE, model=str(REFERENCES / "gpt_oss"), text="The waves") as explorer:
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("^")
        assert "has a sink beside the scores" in explorer.messages[-1]
