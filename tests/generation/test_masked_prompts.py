"""Padding of a prompt or a source is read as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import REFERENCES, with_settings

from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

SETTINGS = Settings(max_new_tokens=4)


def with_pad(folder: Path, name: str, pad: int) -> Model:
    """The reference with a pad ID of its own."""
    return Model.load(with_settings(folder, name, pad_token_id=pad), device="cpu", dtype="float64")


def test_padding_of_a_prompt_is_left_out_by_a_mask_and_by_the_pad_id(tmp_path):
    writer = Writer(with_pad(tmp_path, "llama", 2), SETTINGS, Rules())
    assert writer.unpadded([3, 3, 7, 9], [0, 0, 1, 1]) == (7, 9)
    assert writer.unpadded([2, 2, 7, 2, 9]) == (7, 2, 9)
    assert writer.unpadded([7, 9]) == (7, 9)


def test_a_pad_id_that_ends_texts_too_is_read(tmp_path):
    writer = Writer(with_pad(tmp_path, "llama", 2), SETTINGS, Rules(stop_ids=(2,)))
    assert writer.unpadded([2, 7, 9]) == (2, 7, 9)


@pytest.mark.parametrize("name", ["bart", "t5", "marian"])
def test_a_source_under_a_mask_is_the_source_alone(name):
    model = Model.load(REFERENCES / name, device="cpu", dtype="float64")
    start = [model.config.start_id or 0]
    texts = []
    for source, mask in (([7, 9, 12], None), ([7, 9, 12, 33, 34], [1, 1, 1, 0, 0])):
        writer = Writer(model, SETTINGS, Rules(), source, mask)
        *_, last = writer.run(writer.begin(start))
        texts.append(last.written)
    assert texts[0] == texts[1]


def test_a_mask_that_does_not_fit_is_refused():
    model = Model.load(REFERENCES / "bart", device="cpu")
    with pytest.raises(InputError, match="1 × 2, for 1 × 3 tokens"):
        Writer(model, SETTINGS, Rules(), [7, 9, 12], [1, 1])
    writer = Writer(Model.load(REFERENCES / "llama", device="cpu"), SETTINGS, Rules())
    with pytest.raises(InputError, match="a row of it has no 1"):
        writer.unpadded([7, 9], [0, 0])
