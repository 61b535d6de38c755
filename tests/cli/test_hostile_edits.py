"""Values of edits: texts of any kind and files that are broken, each used or refused in one line."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hostile import COUNTS, damaged, hold, read_or_refused
from hypothesis import strategies as st
from safetensors.numpy import save

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.session.edit_format import changes

STEP = "encoder.0.output"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("encoder", device="cpu")


def computed(model: Model, text: str) -> None:
    """The step as it is with an edit, which has the shape that it had."""
    program = model.program(3)
    trace = model.trace(ids=[1, 2, 3]).edited(changes(model, program, [text]))
    assert trace[STEP].shape == program.shape(STEP)


def packed(write: object, *arrays: np.ndarray, **named: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arrays, **named)  # type: ignore[operator]
    return buffer.getvalue()


VECTOR = np.arange(8, dtype=np.float32)
FILES = {
    "v.npy": packed(np.save, VECTOR),
    "v.npz": packed(np.savez, one=VECTOR),
    "v.safetensors": save({"one": VECTOR}),
}


@COUNTS
@pytest.mark.parametrize("name", FILES)
def test_broken_files_of_values(tmp_path, model, name, count):
    path = tmp_path / name

    def check(data: bytes) -> None:
        path.write_bytes(data)
        read_or_refused(lambda: computed(model, f"{STEP} += {path}"), path, tmp_path / STEP, tmp_path / "--edit")

    hold(count, check, data=damaged(FILES[name]))


PIECES = [
    "0.output",
    STEP,
    "[",
    "]",
    "0",
    ":",
    ",",
    "=",
    "+=",
    "*=",
    "/=",
    " ",
    "1e999",
    "2*",
    "mean",
    "'the'",
    "-",
    "x.npy",
]


@COUNTS
def test_texts_of_edits(model, count):
    def check(text: str) -> None:
        try:
            computed(model, text)
        except InputError as refused:
            line = str(refused)
            assert len(line.splitlines()) == 1, line
            assert len(line) < 1000, line

    texts = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
    hold(count, check, text=st.one_of(texts, texts.map(lambda place: f"{STEP}[{place}] = 1"), st.text(max_size=30)))
