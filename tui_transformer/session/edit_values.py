"""The values of edits as they are written: sums of numbers, arrays of files, means of texts and directions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.effects import means
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded
from tui_transformer.model import Model
from tui_transformer.model.options import Listen, ignore, texts_of, traced
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis.directions import Where

EXAMPLES = "write STEP = 0, STEP[3] *= 0.5, STEP += 2*vector.npy or STEP += 'one text' - 'another'"
_TEXTS = r"'[^']*'|\"[^\"]*\"|[^\s,()'\"][^,()'\"]*"
TERM = re.compile(
    r"\s*(?P<sign>[-+]?)\s*(?:(?P<factor>[0-9.]+(?:e[-+]?[0-9]+)?)\s*\*\s*)?"
    r"(?P<what>(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf)(?![\w./])|mean\((?P<texts>[^)]+)\)"
    rf"|direction\(\s*(?P<positive>{_TEXTS})\s*,\s*(?P<negative>{_TEXTS})\s*(?:,\s*(?P<where>mean|-?[0-9]{{1,9}})\s*)?\)"
    r"|'(?P<text>[^']*)'|\"(?P<other>[^\"]*)\"|(?P<file>[^\s+*'\"]+))\s*"
)


@dataclass(frozen=True)
class Term:
    """A summand of a value.

    Attributes:
        factor: With its sign.
        name: The step whose mean it is, where it is one.
        what: As it is written behind the factor.
        number: A number or an array; None where the model says it.
        text: The text whose mean it is.
        path: The text file whose mean it is.
        pair: The texts that a direction leads to, and away from; each a text in quotes, or a file of lines.
        where: The token of each of them that counts.
    """

    factor: float
    name: str
    what: str
    number: Host | None = None
    text: str | None = None
    path: Path | None = None
    pair: tuple[str, str] | None = None
    where: Where = -1

    def value(self, model: Model, listen: Listen, report: Report = silent) -> Host:
        """Number or array, without the factor.

        Raises:
            InputError: The text or the file cannot be read.
        """
        if self.number is not None:
            return self.number
        if self.pair is not None:
            from tui_transformer.analysis.directions import direction  # it needs much else that analyses

            positive, negative = map(_texts, self.pair)
            return direction(model, positive, negative, self.name, self.where, report).vector
        if self.path is not None:
            return of_texts(model, self.path, [self.name], listen)[self.name]
        return means(traced(model, [self.text or ""], listen), [self.name])[self.name]


def _texts(written: str) -> Sequence[str]:
    return [written[1:-1]] if written[0] in "'\"" else [*texts_of(expanded(written.strip()))]


def terms_of(name: str, text: str, most: int) -> Iterator[Term]:
    """The terms of a sum, each with its sign and factor; an array has at most so many numbers.

    Raises:
        InputError: It is no sum of values, or a file cannot be read.
    """
    at = 0
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or (at and not match["sign"]):
            raise UsageError(f"{visible(text[at : at + 40])!r} is no value: {EXAMPLES}")
        try:
            factor = float(match["factor"] or 1)
        except ValueError as error:
            raise UsageError(f"{visible(match['factor'])!r} is no factor: {EXAMPLES}") from error
        factor, at, what = -factor if match["sign"] == "-" else factor, match.end(), match["what"]
        if match["number"] is not None:
            yield Term(factor, name, what, np.asarray(float(match["number"])))
        elif match["file"] is not None and match["file"].casefold() == "nan":
            raise UsageError(f"{name} can be changed by a number, not by NaN")
        elif match["file"] is not None:
            yield Term(factor, name, what, _array(match["file"], most))
        elif match["texts"] is not None:
            yield Term(factor, name, what, path=expanded(match["texts"].strip()))
        elif match["positive"] is not None:
            where: Where = "mean" if match["where"] == "mean" else int(match["where"] or -1)
            yield Term(factor, name, what, pair=(match["positive"], match["negative"]), where=where)
        else:
            yield Term(factor, name, what, text=match["text"] if match["text"] is not None else match["other"])


def of_texts(model: Model, path: Path, names: Sequence[str], listen: Listen = ignore) -> dict[str, Host]:
    """The means of steps over the tokens of all lines of a text file, one line at a time.

    Raises:
        InputError: The file cannot be read, or has no line with a token.
    """
    return means(traced(model, texts_of(path), listen), names)


def _array(text: str, most: int) -> Host:
    from tui_transformer.diagnosis.dumps import open_dump

    path, _, name = text.rpartition(":") if ":" in text else (text, "", "")
    tensors = open_dump(expanded(path)).tensors
    if not name and len(tensors) != 1:
        raise InputError(f"{visible(text)} holds {len(tensors)} arrays: write {visible(text)}:NAME")
    name = name or next(iter(tensors))
    if name not in tensors:
        raise InputError(
            f"{visible(path)} has no array {visible(name)!r}: it has {', '.join(map(visible, [*tensors][:6]))}"
        )
    tensors[name].check_size(most, Path(path))
    return np.asarray(tensors[name].values.array, np.float64)
