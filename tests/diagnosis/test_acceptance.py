"""A table of dumps: styles of writing × right and wrong programs, and what is said of each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from dumping import GGML, IDS, MODULES, computed, model_of
from small import Arrays
from writers import STYLES, named_for

from tui_transformer.diagnosis import Diagnosis, Input, diagnose
from tui_transformer.diagnosis.dumps import open_dump

POST = ("scale-missing", "softmax-axis", "weight-transposed", "bias-missing", "norm-variance", "residual-missing",
        "logits")  # fmt: skip
PRE = ("mask-missing", "scale-d_model", "norm-gamma-missing", "gelu-tanh", "last-norm", "logits")
LLAMA = ("scale-missing", "mask-missing", "rotary-interleaved", "residual-missing", "activation", "logits")
OF_LLAMA = ("debugger", "llama.cpp")


def cases(style: str) -> list[tuple[str, str]]:
    """The programs that are written in a style: right ones, and one of the mistakes for each, in turn."""
    if style in OF_LLAMA:
        return [("llama", fault) for fault in ("", *LLAMA)]
    turn = list(STYLES).index(style)
    return [("post", ""), ("pre", ""), ("post", POST[turn % len(POST)]), ("pre", PRE[turn % len(PRE)])]


NO_CAUSE = {"logits", "last-norm"}
"""Mistakes whose place alone is told here."""


class Line(NamedTuple):
    """A line of the table."""

    style: str
    model: str
    fault: str
    expected: str | None
    diagnosis: Diagnosis

    @property
    def place(self) -> str | None:
        return self.diagnosis.first and self.diagnosis.first.step

    @property
    def cause(self) -> str | None:
        return self.diagnosis.first and self.diagnosis.first.cause

    def __str__(self) -> str:
        said = f"{len(self.diagnosis.steps)} compared, {len(self.diagnosis.unmatched)} not, {self.place}, {self.cause}"
        return f"{self.style:>15} {self.model:>6} {self.fault or 'right':>20}: {self.expected}: {said}"


@lru_cache
def program(model: str, fault: str = "") -> Arrays:
    """What a program computes, right or with a mistake."""
    if fault == "logits":
        arrays = program(model)
        return arrays | {"output.logits": 3 * arrays["output.logits"]}
    if fault == "last-norm":
        arrays = program(model)
        return arrays | {"decoder.norm": arrays["decoder.norm"] * 1.01, "output.logits": arrays["output.logits"] * 1.01}
    return computed(model, fault)


def first_different(model: str, fault: str, style: str) -> str | None:
    """The first step of a dump that is wrong, under its own name."""
    there = {"debugger": MODULES, "llama.cpp": GGML}.get(style)
    aliases = model_of(model).program(len(IDS)).aliases
    for name, array in program(model).items():
        theirs = program(model, fault)[name]
        pattern = name.replace(".0.", ".{}.").replace(".1.", ".{}.")
        with np.errstate(invalid="ignore"):
            differs = theirs.shape != array.shape or not np.allclose(theirs, array, rtol=1e-4, atol=1e-4)
        if differs and (there is None or pattern in there):
            return aliases.get(name, name)
    return None


def table(style: str, folder: Path) -> list[Line]:
    """What is said of the dumps of a style."""
    lines = []
    for model, fault in cases(style):
        place = folder / f"{model} {fault}"
        place.mkdir()
        path = STYLES[style](place, named_for(style, program(model, fault)), IDS)
        given = Input(np.array([IDS])) if style == "llama.cpp" else None  # its log shows the ends of the IDs
        expected = first_different(model, fault, style)
        lines.append(Line(style, model, fault, expected, diagnose(open_dump(path), model_of(model), given)))
    return lines


def test_there_are_sixty_dumps_in_twelve_styles_and_every_mistake_is_among_them() -> None:
    every = [case for style in STYLES for case in cases(style)]
    assert len(every) >= 60
    assert len(STYLES) >= 12
    assert {fault for _, fault in every} >= {*POST, *PRE, *LLAMA}


@pytest.mark.parametrize("style", STYLES)
def test_every_dump_of_a_style_is_told_right(style: str, tmp_path: Path) -> None:
    """No "same" over a wrong number, no alarm over a right program, all compared, the place and the cause."""
    lines = table(style, tmp_path)
    print("\n".join(map(str, lines)))  # noqa: T201 - the table is shown where a test fails
    assert [str(line) for line in lines if line.diagnosis.unmatched] == []
    assert [str(line) for line in lines if line.diagnosis.same == bool(line.fault)] == []
    assert [str(line) for line in lines if line.place != line.expected] == []
    known = [line for line in lines if line.fault and line.fault not in NO_CAUSE]
    assert [str(line) for line in known if line.cause != line.fault] == []
