"""A text that is written on in one call, beside the writer and its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_transformer import Add, InputError, Model, Scale, generate
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer

REFERENCES = Path(__file__).parent.parent / "references"


def test_a_text_is_what_the_writer_writes_behind_it():
    model = Model.load("story", device="cpu")
    text = generate(model, "Once there was", greedy=True, max_new_tokens=8)
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8))
    *_, last = writer.run(writer.begin(writer.prompt("Once there was").ids))
    assert text == model.tokenizer.decode(last.written)
    assert text == generate(model, list(writer.prompt("Once there was").ids), greedy=True, max_new_tokens=8)
    edits = [Add("1.output", 3.0), Scale("2.self_attention.context", 0.0, heads=1)]
    assert generate(model, "Once there was", greedy=True, max_new_tokens=8, edits=edits) != text
    drawn = [generate(model, "Once", seed=seed, temperature=2, max_new_tokens=8) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_an_encoder_decoder_writes_from_its_source():
    model = Model.load("dates", device="cpu")
    assert generate(model, source="May 3, 2021", greedy=True) == "2021-05-03"
    with pytest.raises(InputError, match="its encoder reads: give one"):
        generate(model, "20")


def test_what_cannot_be_is_said():
    model = Model.load("story", device="cpu")
    with pytest.raises(InputError, match="no setting is called tokens: use temperature"):
        generate(model, "Once", tokens=3)
    with pytest.raises(InputError, match="nothing to write on from"):
        generate(model, [])
    with pytest.raises(InputError):
        generate(Model.load(REFERENCES / "bert"), [5, 6])
