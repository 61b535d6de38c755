"""The beginning of an exercise: a Python file with the task, or text files; and answers that a program prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tui_transformer.course.exercise import Exercise
from tui_transformer.course.sources import Answer, Facts, Given, Value
from tui_transformer.diagnosis.dumps.dump import Tensor, Values
from tui_transformer.diagnosis.dumps.log import Line, log_of
from tui_transformer.diagnosis.naming.words import spelled
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import write_whole
from tui_transformer.text.files import shown_path

WIDTH = 96
TASK = "task.txt"


def start(exercise: Exercise, file: Path) -> None:
    """Write the learner's file.

    Raises:
        InputError: There is such a file, which is left as it is, or it cannot be written.
    """
    _check_new(file)
    text = describe(Facts(exercise)).replace("\\", "\\\\").replace('"""', "'''")
    source = (
        f'"""{text}\nCheck it:  tui-transformer exercise check {exercise.name}\n'
        f'A hint:    tui-transformer exercise hint {exercise.name}\n"""\n\nimport numpy as np\n\n\n'
        f"def {exercise.function}({', '.join(exercise.inputs)}):\n    raise NotImplementedError\n"
    )
    write_whole(file, source.encode())


def start_files(exercise: Exercise, folder: Path) -> None:
    """Write the task and the inputs as text files into a new folder.

    Raises:
        InputError: There is such a folder, or it cannot be written.
    """
    _check_new(folder)
    facts = Facts(exercise)
    task = f"{describe(facts)}\n{IN_ANY_LANGUAGE.format(name=exercise.name)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{shown_path(folder)}: cannot be made: {error.strerror}") from error
    write_whole(folder / TASK, task.encode())
    write_inputs(folder, facts.inputs)


IN_ANY_LANGUAGE = """\
Each input is a text file here, NAME.txt: an array has its shape in the first line and a row in each line below; the
rows of the first matrix come first, then those of the next. Weights are a file each, in a folder. Write a program
that is given the folder as its last argument, reads them, and prints the answer: numbers alone where there is one
answer, else each below a line with its name.

Check it: tui-transformer exercise check {name} --command ./a.out
"""


def _check_new(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise InputError(f"{shown_path(path)}: is there already, and is not written over: name another with --out")


def describe(facts: Facts) -> str:
    """The title, the task, the inputs and the answers with their shapes."""
    exercise = facts.exercise
    answers = {name: Given(answer.value, answer.axes) for name, answer in facts.answers.items()}
    width = max(map(len, (*facts.inputs, *answers)))

    def table(rows: Mapping[str, Given]) -> Iterator[str]:
        for name, given in rows.items():
            value, axes = given.value, ""
            if isinstance(value, str):
                kind = "a text"
            elif isinstance(value, list):
                kind = f"{len(value)} words"
            elif isinstance(value, dict):
                kind = f"{len(value)} arrays by name, below"
            elif array_shape := np.shape(value):
                kind, axes = shape_text(array_shape), " × ".join(given.axes)
            else:
                kind = "one number" if isinstance(value, np.ndarray) else repr(value)
            yield f"    {name:{width}}  {kind}{f'  ({axes})' if axes else ''}"

    lines = [exercise.title]
    for paragraph in exercise.task.split("\n\n"):
        lines += ("", *textwrap.wrap(" ".join(paragraph.split()), WIDTH))
    lines += ("", f"Given, of the model {exercise.model} for the text {exercise.text!r}:", *table(facts.inputs))
    for name, given in facts.inputs.items():
        if isinstance(given.value, dict):  # weights, an array a line
            weights = given.value.items()
            lines += ("", *(f"    {name}[{below!r}]  {shape_text(array.shape)}" for below, array in weights))
    return "\n".join([*lines, "", f"{exercise.function} returns:", *table(answers)]) + "\n"


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
        raise InputError(
            f"prints no {', '.join(missing)}: print a line with the name, and the numbers below it "
            f"(it prints {', '.join(list(tensors)[:4])})"
        )
    return {name: _shaped(named[spelled(name)], answer) for name, answer in answers.items()}


def _shaped(tensor: Tensor, answer: Answer) -> Values:
    """Rows that were printed without blank lines between matrices, in the shape of the answer."""
    values = tensor.values
    shape = answer.value.shape
    if len(shape) < 2 and values.array.ndim == 2 and 1 in values.array.shape and values.array.size > 1:
        return values._replace(array=values.array.reshape(-1))  # a row or a column is a list
    flat = len(shape) < 2 or values.array.shape[-1:] == shape[-1:]
    same = flat and values.array.size == answer.value.size
    return values._replace(array=values.array.reshape(shape)) if same else values
