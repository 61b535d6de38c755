"""Inputs as text files, for programs in any language; and what such a program prints, as answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tui_transformer.course.sources import Answer, Given, Value
from tui_transformer.diagnosis.dumps.dump import Tensor, Values
from tui_transformer.diagnosis.dumps.log import Line, log_of
from tui_transformer.diagnosis.naming.name import spelled
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import write_whole


def write_inputs(folder: Path, inputs: Mapping[str, Given]) -> None:
    """A file an input: `NAME.txt`; weights in a folder of its name.

    Raises:
        InputError: One cannot be written.
    """
    for name, given in inputs.items():
        if isinstance(given.value, dict):
            (folder / name).mkdir(exist_ok=True)
            for below, array in given.value.items():
                write_whole(folder / name / f"{below}.txt", text_of(array).encode())
        else:
            write_whole(folder / f"{name}.txt", text_of(given.value).encode())


def text_of(value: Value | Host) -> str:
    """A number or a text alone; words a line each; an array with its shape in the first line, then a row a line."""
    if isinstance(value, str):
        return value + "\n"
    if isinstance(value, list):
        return "".join(f"{word}\n" for word in value)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item()!r}\n"
    rows = array.reshape(-1, array.shape[-1]).tolist()
    lines = [" ".join(map(str, array.shape)), *(" ".join(map(repr, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def printed_answers(text: str, answers: Mapping[str, Answer]) -> dict[str, Values]:
    """The answers in what a program printed: numbers alone where there is one, else each under a line with its name.

    Raises:
        InputError: One is not there.
    """
    tensors = log_of(Path("the output"), map(Line, text.splitlines())).tensors
    if len(answers) == 1 and len(tensors) == 1:
        return {name: _shaped(tensor, answers[name]) for name, tensor in zip(answers, tensors.values(), strict=True)}
    named = {spelled(name): tensor for name, tensor in tensors.items()}
    missing = [name for name in answers if spelled(name) not in named]
    if missing:
        raise InputError(_missing(missing, list(tensors)))
    return {name: _shaped(named[spelled(name)], answer) for name, answer in answers.items()}


def _missing(missing: Sequence[str], there: Sequence[str]) -> str:
    return (
        f"prints no {', '.join(missing)}: print a line with the name, and the numbers below it "
        f"(it prints {', '.join(there[:4])})"
    )


def _shaped(tensor: Tensor, answer: Answer) -> Values:
    """Rows that were printed without blank lines between matrices, in the shape of the answer."""
    values = tensor.values
    shape = answer.value.shape
    if len(shape) < 2 and values.array.ndim == 2 and 1 in values.array.shape and values.array.size > 1:
        return values._replace(array=values.array.reshape(-1))  # a row or a column is a list
    flat = len(shape) < 2 or values.array.shape[-1:] == shape[-1:]
    same = flat and values.array.size == answer.value.size
    return values._replace(array=values.array.reshape(shape)) if same else values
