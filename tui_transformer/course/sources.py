"""Inputs and answers of an exercise: taken from what a model computes, as a learner begins with them, and from text.

In `about.toml` a source is the name of a step or weight (one that ends in `*`: all weights below it), a number, or a
table with one of the keys of `KINDS`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.course.exercise import Exercise, Source
from tui_transformer.diagnosis.dumps.dump import Tensor, Values
from tui_transformer.diagnosis.dumps.log import Line, log_of
from tui_transformer.diagnosis.naming.words import spelled
from tui_transformer.diagnosis.reference_values import SPREAD, Input, Reference, float32_noise, reference_values
from tui_transformer.engine.axis import Axes, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED, gradients
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.files import write_whole
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

Value = Host | float | int | str | list[str] | dict[str, Host]
"""An array, a number, a text, words, or weights by name."""

NEXT = "next"
IDS, RAISED = "ids", "raised"
TOKENS = "tokens"
"""The step of the token IDs."""
ROWS: Mapping[str, slice] = {"last": slice(-1, None), "earlier": slice(None, -1)}
"""Rows of a step: of the last token, or of those before it."""


@dataclass(frozen=True, eq=False)
class Given:
    """A value, in float64 where it is an array of numbers, and the names of its axes."""

    value: Value
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Answer(Given):
    """A right answer; `granted`: how far another order of the same computation in float32 may be from it."""

    value: Host
    granted: float = 0.0


@dataclass(frozen=True, eq=False)
class Facts:
    """The numbers that an exercise is about: the right values of its model for its sentence."""

    exercise: Exercise

    @cached_property
    def model(self) -> Model:
        """The model that the exercise names."""
        return Model.load(self.exercise.model)

    @cached_property
    def reference(self) -> Reference:
        """The right values."""
        return reference_values(self.model, Input(np.array([self.ids])))

    @cached_property
    def ids(self) -> list[int]:
        """The token IDs of the sentence."""
        return [token.id for token in self.model.encode(self.exercise.text).tokens]

    @property
    def words(self) -> Sequence[str]:
        """The vocabulary of the model, by ID; none where it has none."""
        return self.model.vocabulary.words if self.model.vocabulary is not None else ()

    @property
    def targets(self) -> list[int]:
        """The token that each position predicts; −1 at the last where it predicts the next token."""
        if self.exercise.predicts != NEXT:
            raise self.wrong('a loss or gradient needs the line predicts = "next"')
        return [*self.ids[1:], NOT_COUNTED]

    @cached_property
    def inputs(self) -> dict[str, Given]:
        """The arguments of the learner's function."""
        return {name: self.given(source, self.reference.exact) for name, source in self.exercise.inputs.items()}

    @cached_property
    def answers(self) -> dict[str, Answer]:
        """The arrays that it is to return."""
        return {name: self._answer(source) for name, source in self.exercise.answers.items()}

    def given(self, source: Source, trace: Trace) -> Given:
        """The value of a source.

        Raises:
            InputError: There is no such source.
        """
        if isinstance(source, int | float):
            return Given(source)
        if isinstance(source, str):
            return self._named(source, trace)
        kind = next((key for key in KINDS if isinstance(source, dict) and key in source), None)
        if kind is None:
            raise self.wrong(f"{source!r} is no input: use the name of a step, a number, or one of {', '.join(KINDS)}")
        return KINDS[kind](self, source, trace)

    def step(self, source: Source) -> str | None:
        """The step that a source names, raised or not; None where it is something else."""
        name = source.get(RAISED) if isinstance(source, dict) else source
        return name if isinstance(name, str) and name in self.reference.program.by_name else None

    def is_ids(self, name: str) -> bool:
        """True if an answer is token IDs."""
        source = self.exercise.answers[name]
        return isinstance(source, dict) and IDS in source

    def wrong(self, says: str) -> InputError:
        """A mistake of the teacher."""
        return InputError(f"{shown_path(self.exercise.folder)}: {visible(says)}")

    def _named(self, name: str, trace: Trace) -> Given:
        program = trace.program
        if name.endswith("*"):
            prefix = name[:-1]
            names = [each for each in program.weights if each.startswith(prefix)]
            if not names:
                raise self.wrong(f"no weight of {self.exercise.model} begins with {prefix}")
            return Given({each.removeprefix(prefix): _weight(trace, each) for each in names})
        if name in program.weights:
            return Given(_weight(trace, name), _named_axes(program.weights[name]))
        if name not in program.by_name:
            raise self.wrong(f"{name} is no step and no weight of {self.exercise.model}")
        return Given(trace.array(name)[0], _named_axes(program.by_name[name].axes))

    def _answer(self, source: Source) -> Answer:
        exact, rough = (self.given(source, trace) for trace in (self.reference.exact, self.reference.rough))
        if isinstance(exact.value, str | dict | list):
            raise self.wrong("an answer is a step, or something else of numbers")
        value, other = (np.asarray(each, np.float64) for each in (exact.value, rough.value))
        return Answer(value, exact.axes, SPREAD * float32_noise(value, other))


def step_of(exercise: Exercise, program: Program) -> str | None:
    """The step that an exercise is about: the first that its answers name, else the first of its inputs."""
    for source in (*exercise.answers.values(), *exercise.inputs.values()):
        name = source
        if isinstance(source, dict):
            of = next((source[key] for key in ("of", RAISED, "gradient") if key in source), None)
            name = TOKENS if IDS in source or "text" in source else of
        if name in program.by_name:
            return str(name)
    return None


def _weight(trace: Trace, name: str) -> Host:
    weight: Host = trace.backend.to_host(trace.weights.get(name, trace.program.shape(name))).astype(np.float64)
    return weight


def _named_axes(axes: Axes) -> tuple[str, ...]:
    return tuple(axis.name for axis in axes)


# The kinds of tables


def _rows(facts: Facts, source: Mapping[str, Any], trace: Trace) -> Given:
    """Some rows of a step: `{of = "…", rows = "last"}`."""
    whole = facts.given(source["of"], trace)
    rows = ROWS.get(source.get("rows", ""))
    if rows is None or not isinstance(whole.value, np.ndarray) or whole.value.ndim < 2:
        raise facts.wrong(f"rows is one of {', '.join(ROWS)}, of a step with rows")
    return Given(whole.value[..., rows, :], whole.axes)


def _raised(facts: Facts, source: Mapping[str, Any], trace: Trace) -> Given:
    """A step with a number added to every second row, which the softmax of a row does not see: `{raised, by}`."""
    whole, by = facts.given(source[RAISED], trace), source.get("by")
    if not isinstance(by, int | float) or not isinstance(whole.value, np.ndarray) or whole.value.ndim < 2:
        raise facts.wrong(f"{RAISED} is a step with rows, and by the number that is added to every second one")
    value = whole.value.copy()
    value[..., 1::2, :] += by
    return Given(value, whole.axes)


def _setting(facts: Facts, source: Mapping[str, Any], _: Trace) -> Given:
    """A setting of the model: `{setting = "heads"}`."""
    value = getattr(facts.model.config, str(source["setting"]), None)
    if not isinstance(value, int | float):
        raise facts.wrong(f"{source['setting']} is no number in the settings of {facts.exercise.model}")
    return Given(value)


def _gradient(facts: Facts, source: Mapping[str, Any], trace: Trace) -> Given:
    """The gradient of the mean loss at a step or weight: `{gradient = "…"}`."""
    values = gradients(trace, [facts.targets]).values
    name = str(source["gradient"])
    if name not in values:
        raise facts.wrong(f"{name} has no gradient in {facts.exercise.model}")
    step = trace.program.by_name.get(name)
    axes = step.axes if step else trace.program.weights[name]
    return Given(values[name][0] if step and values[name].ndim > len(axes) else values[name], _named_axes(axes))


def _words(facts: Facts, _: Mapping[str, Any], __: Trace) -> Given:
    """The words of the vocabulary, by ID: `{words = true}`."""
    if facts.model.vocabulary is None:
        raise facts.wrong(f"{facts.exercise.model} has no vocabulary")
    return Given(list(facts.words))


KINDS: Mapping[str, Callable[[Facts, Mapping[str, Any], Trace], Given]] = {
    "of": _rows,
    RAISED: _raised,
    "setting": _setting,
    "gradient": _gradient,
    "loss": lambda facts, _, trace: Given(gradients(trace, [facts.targets]).loss),
    IDS: lambda facts, _, __: Given(np.array(facts.ids), ("token",)),
    "text": lambda facts, _, __: Given(facts.exercise.text),
    "words": _words,
}
"""Entries that a table in `about.toml` may have; `loss`, `ids`, `text` and `words` are `true`."""


# The beginning: a Python file with the task, or text files; and answers that a program prints

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
    width = max(map(len, (*facts.inputs, *facts.answers)))

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
    return "\n".join([*lines, "", f"{exercise.function} returns:", *table(facts.answers)]) + "\n"


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
    named = {spelled(name): tensor for name, tensor in tensors.items()}
    if len(answers) == 1 and len(tensors) == 1:
        named = dict(zip(map(spelled, answers), tensors.values(), strict=True))
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
