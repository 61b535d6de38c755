"""What is broken on purpose, without a screen."""

from __future__ import annotations

import pytest
from typed_lines import typed

from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position


def test_something_is_broken_and_mended(reader):
    said = typed(reader, ":scaled", "cell 0 8", "break no-scale")
    assert "changed: broken: without ÷ √d_k; " in said
    assert "changed: mended: without ÷ √d_k; " in typed(reader, "break no-scale")
    assert not reader.explored.session.breaks
    with pytest.raises(InputError, match="nothing to break"):
        typed(reader, "break rotary-interleaved")
    with pytest.raises(InputError, match="'nonsense' is none of no-scale"):
        typed(reader, "break nonsense")


def test_breaks_are_told_with_numbers_and_made_with_one(reader):
    said = typed(reader, "breaks")
    parts = (
        "causal mask where there is none (causal-mask): question 99.9 % → statement",
        "(temperature): question 99.9 % → 75.6 %",
        "What changes nothing here: ",
        "(naive-softmax): no sent",
    )
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert "Not here: mask off (no-mask): its mask hides nothing" in said
    told = typed(reader, "breaks no-scale 0.5")
    assert told.startswith("scores ÷ √d_k × 0.5: question 99.91 % → 99.92 %; ")
    assert "nothing from 0 to 4 turns the answer" in told
    assert not reader.explored.session.breaks
    assert "broken: scores ÷ √d_k × 0.5" in typed(reader, "break no-scale 0.5")
    assert reader.explored.session.breaks == ("no-scale=0.5",)
    assert "broken: scores ÷ √d_k × 2" in typed(reader, "break no-scale=2")
    assert "mended: scores ÷ √d_k × 2" in typed(reader, "break")
    with pytest.raises(InputError, match="takes no number"):
        typed(reader, "break causal-mask 0.5")


def test_what_is_written_is_said_to_be_without_what_is_broken_and_with_the_edits():
    session = open_session(ModelOptions("story", device="cpu"), None, None)
    reader = Reader(Exploration(History(session), Position("decoder.1.self_attention.weights")))
    assert "the model writes" not in typed(reader, "generate 2")
    typed(reader, "break no-mask")
    assert "”; the model writes as it is, without what is broken: mask off" in typed(reader, "generate 2")
    typed(reader, "break", "set decoder.1.output += 1")
    assert "; the model writes with the edits of the explorer" in typed(reader, "generate 2")
