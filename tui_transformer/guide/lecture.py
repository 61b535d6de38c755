"""Lectures: tours in a file of one's own, a section a stop, read with care and written stop by stop.

A file looks so; of the fields only `title`, `text` and `step` are needed::

    [about]
    question = "Where does the weight .99 come from?"

    [every-stop]
    sentence = "where did the old sailor hide the map ?"

    [softmax]
    title = "Softmax"
    text = "Every row sums to 1."
    step = "encoder.0.self_attention.weights"
    head = 2
    row = 0
    column = 8
    notes = "Ask first: which word will be the largest?"

In title, text and notes a key is named by what it is for, as in the file of preferences: "{key:ablate.head} sets this
head to 0" is read as "a sets this head to 0", or with the key that the user gave to that.

In a step `*` stands for anything, as in "*.self_attention.weights", and of "*.feed_forward.gate|*.feed_forward.hidden"
the first is meant that the model has: so one lecture serves several models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import is_there, read_toml, write_whole
from tui_transformer.guide.texts import Stop, tour, tour_question, tours
from tui_transformer.model.local_models import named_alike
from tui_transformer.text.files import shown_path

ABOUT, EVERY_STOP = "about", "every-stop"
LARGEST, MOST_STOPS, LONGEST = 1 << 20, 500, 20_000
"""Bytes of a file, its stops, and characters of a text."""

NEEDED = ("title", "text", "step")
ORDER = (*NEEDED, "head", "row", "column", "sentence", "target", "ablate", "edits", "breaks", "notes")
"""The fields that a bookmark may have, as they are written."""


@dataclass(frozen=True)
class Lecture:
    """A tour: the question that it answers, its stops, and the file that it is from; None for one of the program."""

    name: str
    question: str
    stops: tuple[Stop, ...]
    path: Path | None = None


def lecture(where: str) -> Lecture:
    """The tour of a name, or the one in a file; InputError where there is neither, or the file is none."""
    if (name := named_alike(where, tours())) is not None:
        return Lecture(name, tour_question(name), tour(name))
    path = Path(where)
    if not path.suffix and not is_there(path):
        raise InputError(f"no tour is named {where[:60]!r}: use {', '.join(tours())}, or a file such as lecture.toml")
    return read_lecture(path)


def read_lecture(path: Path) -> Lecture:
    """The tour in a file; InputError where it is none, whose line names the file, the section and the field."""
    table, place = read_toml(path, LARGEST), shown_path(path)
    about = table.get(ABOUT, {})
    question = about.get("question", "") if isinstance(about, dict) else None
    if not isinstance(question, str) or len(question) > LONGEST:
        raise InputError(f"{place}: [{ABOUT}] question is not a text")
    shared = table.get(EVERY_STOP, {})
    if not isinstance(shared, dict):
        raise InputError(f"{place}: [{EVERY_STOP}] is not a section")
    sections = {name: section for name, section in table.items() if name not in (ABOUT, EVERY_STOP)}
    stops = tuple(_stop(place, name, section, shared) for name, section in sections.items())
    if not stops:
        raise InputError(f"{place}: there is no stop: write a section, such as [first], with {', '.join(NEEDED)}")
    if len(stops) > MOST_STOPS:
        raise InputError(f"{place}: {len(stops):,} stops are too many: {MOST_STOPS} at most")
    return Lecture(path.stem, " ".join(question.split()), stops, path)


def _stop(place: str, name: str, own: object, shared: Mapping[str, object]) -> Stop:
    """A stop, checked field by field; what it does not say is as for every stop."""
    where = f"{place}: [{name[:60]}]"
    if not isinstance(own, dict):
        raise InputError(f"{where} is not a section: a stop begins with its name in brackets")
    section = {**shared, **own}
    missing = next((field for field in NEEDED if field not in section), None)
    if missing is not None:
        raise InputError(f"{where} has no {missing}: a stop needs {', '.join(NEEDED)}")
    fields: dict[str, Any] = {}
    for field, value in section.items():
        if field not in _FIELDS:
            raise InputError(f"{where} {field[:60]!r} is not a field of a stop: use {', '.join(_FIELDS)}")
        what, read = _FIELDS[field]
        fields[field] = read(value)
        if fields[field] is None:
            raise InputError(f"{where} {field} is not {what}")
    return Stop(name=name, **fields)


def _text(value: object) -> str | None:
    return " ".join(value.split()) if isinstance(value, str) and len(value) <= LONGEST else None


def _words(value: object) -> str | None:
    return _text(value) or None


def _sentence(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= LONGEST else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _list(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or len(value) > MOST_STOPS or not all(isinstance(each, str) for each in value):
        return None
    return tuple(value)


def _pair(value: object) -> tuple[str, ...] | None:
    entries = _list(value)
    return entries if entries is not None and len(entries) == 2 and entries[0] else None


def _one_of(*names: str) -> Callable[[object], str | None]:
    return lambda value: value if isinstance(value, str) and value in names else None


_FIELDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "title": ("a text", _words),
    "text": ("a text", _words),
    "step": ("the name of a step", _words),
    "head": ("a whole number from 0", _count),
    "row": ("a whole number from 0", _count),
    "column": ("a whole number from 0", _count),
    "sentence": ("a text", _sentence),
    "target": ("a text", _sentence),
    "vocabulary": ("the name of a vocabulary", _words),
    "positions": ("sinusoidal, learned or none", _one_of("sinusoidal", "learned", "none")),
    "action": ("explain, vocabulary or chart", _one_of("explain", "vocabulary", "chart")),
    "ablate": ('a list such as ["head:encoder.0.self_attention:2"]', _list),
    "edits": ('a list such as ["encoder.0.self_attention.context[2] = 0"]', _list),
    "breaks": ('a list such as ["no-scale"]', _list),
    "change": ('what and by what, as ["map", "sea"]', _pair),
    "answer": ("a whole number from 0", _count),
    "cell": ("largest", _one_of("largest")),
    "predict": ("word, shape, sum, sign or largest", _one_of("word", "shape", "sum", "sign", "largest")),
    "notes": ("a text", _text),
}
"""The fields of a stop: what each has to be, and how it is read; None where it is not that."""


# Writing


def check_name(path: Path) -> None:
    """Raise InputError if the name of a file is not that of a lecture."""
    if path.suffix.lower() != ".toml":
        raise InputError(f"{shown_path(path)}: the name of a lecture has to end in .toml")


def with_stop(path: Path, stop: Stop, question: str = "") -> int:
    """Append a stop to a file, which is made where there is none; gives how many stops it has then.

    InputError where the file is there and is no lecture, or cannot be written; it is as it was.
    """
    check_name(path)
    known: tuple[Stop, ...] = ()
    before = section(ABOUT, {"question": question}) if question else ""
    if is_there(path):
        known = read_lecture(path).stops
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    base = re.sub(r"[^A-Za-z0-9]+", "-", stop.name).strip("-").lower() or "stop"
    names = [base, *(f"{base}-{number}" for number in range(2, MOST_STOPS + 3))]
    taken = {each.name for each in known} | {ABOUT, EVERY_STOP}
    values = {field: getattr(stop, field) for field in ORDER}
    filled = {field: value for field, value in values.items() if value not in (None, (), "")}
    text = section(next(name for name in names if name not in taken), filled)
    write_whole(path, (before + ("\n" if before else "") + text).encode("utf-8", errors="replace"))
    return len(known) + 1


def section(name: str, values: Mapping[str, Any]) -> str:
    """A table of TOML."""

    def written(value: object) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(written, value))}]"
        # JSON's strings are TOML's, but for DEL, and where characters are not written as pairs.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    return "\n".join([f"[{name}]", *(f"{field} = {written(value)}" for field, value in values.items())]) + "\n"
