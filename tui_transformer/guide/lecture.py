"""Lectures: tours in a file of one's own, a section a stop, read with care and written stop by stop.

LECTURES.md says what such a file is; its table of fields is made from `FIELDS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from tui_transformer.errors import InputError
from tui_transformer.files import append, expanded, is_there, read_toml, write_whole
from tui_transformer.guide.texts import ABOUT, EVERY_STOP, LARGEST, Stop, tour, tour_model, tour_question, tours
from tui_transformer.model.local_models import named_alike
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

NOTES_WIDTH = 78
"""Columns of the notes as they are written."""

MOST_STOPS, LONGEST = 500, 20_000
"""Stops of a file, and characters of a text."""

OF_ALL = {"question": "what the lecture answers", "model": "the model that it is of, unless `--model` names another"}
"""The fields of the whole lecture, with what they are for."""

NEEDED = ("title", "text", "step")
ORDER = (*NEEDED, "head", "row", "column", "sentence", "target", "ablate", "edits", "breaks", "features", "notes")
"""The fields that a bookmark may have, as they are written."""

CHANGES = ("ablate", "edits", "breaks")
"""Those that change the model."""


@dataclass(frozen=True)
class Lecture:
    """A tour.

    Attributes:
        name: What it is called by.
        question: What it answers.
        stops: Where it leads.
        path: The file that it is from; None for one of the program.
        model: The model that it is of; "" where it may be any.
        notes: Where its notes are written while it is led, for who gives it; None for nowhere.
    """

    name: str
    question: str
    stops: tuple[Stop, ...]
    path: Path | None = None
    model: str = ""
    notes: Path | None = None


def lecture(where: str) -> Lecture:
    """The tour of a name, or the one in a file; InputError where there is neither, or the file is none."""
    if (name := named_alike(where, tours())) is not None:
        return Lecture(name, tour_question(name), tour(name), model=tour_model(name))
    path = Path(where)
    if not path.suffix and not is_there(path):
        raise InputError(f"no tour is named {where[:60]!r}: use {', '.join(tours())}, or a file such as lecture.toml")
    return read_lecture(path)


def read_lecture(path: Path) -> Lecture:
    """The tour in a file; InputError where it is none, whose line names the file, the section and the field."""
    table, place = read_toml(path, LARGEST), shown_path(path)
    about = table.get(ABOUT, {})
    said = [_text(about.get(field, "")) if isinstance(about, dict) else None for field in OF_ALL]
    if None in said:
        raise InputError(f"{place}: [{ABOUT}] {[*OF_ALL][said.index(None)]} is not a text")
    shared = table.get(EVERY_STOP, {})
    if not isinstance(shared, dict):
        raise InputError(f"{place}: [{EVERY_STOP}] is not a section")
    sections = {name: section for name, section in table.items() if name not in (ABOUT, EVERY_STOP)}
    stops = tuple(_stop(place, name, section, shared) for name, section in sections.items())
    if not stops:
        raise InputError(f"{place}: there is no stop: write a section, such as [first], with {', '.join(NEEDED)}")
    if len(stops) > MOST_STOPS:
        raise InputError(f"{place}: {len(stops):,} stops are too many: {MOST_STOPS} at most")
    return Lecture(path.stem, said[0] or "", stops, path, said[1] or "")


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
        if field not in FIELDS:
            raise InputError(f"{where} {field[:60]!r} is not a field of a stop: use {', '.join(FIELDS)}")
        fields[field] = FIELDS[field].read(value)
        if fields[field] is None:
            raise InputError(f"{where} {field} is not {FIELDS[field].what}")
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


def _yes(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _pair(value: object) -> tuple[str, ...] | None:
    entries = _list(value)
    return entries if entries is not None and len(entries) == 2 and entries[0] else None


class Field(NamedTuple):
    """A field of a stop: what it has to be, how it is read (None where it is not that), and what it is for."""

    what: str
    read: Callable[[Any], Any]
    does: str


def _choice(names: str, does: str) -> Field:
    """A field that is one of some names, as they are said: "red, green or blue"."""
    known = re.split(", | or ", names)
    return Field(names, lambda value: value if isinstance(value, str) and value in known else None, does)


FIELDS: Mapping[str, Field] = {
    "title": Field("a text", _words, "stands in the border of the card; needed"),
    "text": Field("a text", _words, "what the card says; needed"),
    "step": Field("the name of a step", _words, "where the screen stands; needed"),
    "head": Field("a whole number from 0", _count, "the head of the cell"),
    "row": Field("a whole number from 0", _count, "the row of the cell"),
    "column": Field("a whole number from 0", _count, "the column of the cell"),
    "sentence": Field("a text", _sentence, "what the model reads"),
    "target": Field("a text", _sentence, "what the decoder of an encoder–decoder has written"),
    "vocabulary": Field("the name of a vocabulary", _words, "other words for a model of random weights"),
    "positions": _choice("sinusoidal, learned or none", "the positions of such a model"),
    "action": _choice(
        "explain, vocabulary or chart",
        "the pane that the stop is about, where one is shown at a time; a chart takes the room of the whole",
    ),
    "ablate": Field('a list such as ["head:encoder.0.self_attention:2"]', _list, "what is set to 0"),
    "edits": Field(
        'a list such as ["encoder.0.self_attention.context[2] = 0"]', _list, "changes, as `--edit` takes them"
    ),
    "breaks": Field('a list such as ["no-scale"]', _list, "what is computed otherwise, by the names of `break it`"),
    "change": Field(
        'what and by what, as ["map", "sea"]', _pair, "the card says what the answer becomes with other words"
    ),
    "answer": Field(
        "a whole number from 0", _count, "the position whose answer the card gives, where that is not the model's own"
    ),
    "cell": _choice("largest", "in a backward pass the cell of the largest gradient"),
    "predict": _choice(
        "word, shape, sum, sign or largest",
        "the card asks first: which word the row looks at, which shape the step has, what the row sums to, which sign "
        "the cell has, which column is largest; meanwhile the screen shows what the step is made from",
    ),
    "features": Field(
        "true or false", _yes, "with the features of the dictionary that comes with the model as steps, at every stop"
    ),
    "arrow": Field("true or false", _yes, "arrows point at the cell, and the card says the text alone"),
    "notes": Field("a text", _text, "for who gives the lecture: `--notes FILE` writes them, no screen shows them"),
}
"""The fields of a stop."""


# The notes of the speaker


def with_notes(told: Lecture, path: Path) -> Lecture:
    """The tour, whose notes are written behind what is in a file, stop by stop as it is led.

    Raises:
        InputError: The file cannot be written, or is the lecture itself.
    """
    place = expanded(path)
    if told.path is not None and is_there(place) and place.samefile(told.path):
        raise InputError(f"{shown_path(place)}: the lecture itself: notes need a file of their own")
    append(place, f"{visible(told.question or told.name)}\n\n")
    return replace(told, notes=place)


def tell_speaker(told: Lecture, number: int) -> None:
    """Write the notes of a stop (from 1) and what comes next, where notes are written.

    Raises:
        InputError: They cannot be.
    """
    if told.notes is None:
        return
    stop, total = told.stops[number - 1], len(told.stops)
    said = (
        f"Stop {number} of {total} · {stop.title}",
        stop.notes,
        f"Then: {told.stops[number].title}" if number < total else "The last stop.",
    )
    append(told.notes, "".join(f"{fill(visible(each), NOTES_WIDTH)}\n" for each in said if each) + "\n")


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
    before, shared = section(ABOUT, {"question": question}) if question else "", {}
    if is_there(path):
        known, shared = read_lecture(path).stops, read_toml(path, LARGEST).get(EVERY_STOP, {})
        before = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    base = re.sub(r"[^A-Za-z0-9]+", "-", stop.name).strip("-").lower() or "stop"
    names = [base, *(f"{base}-{number}" for number in range(2, MOST_STOPS + 3))]
    taken = {each.name for each in known} | {ABOUT, EVERY_STOP}
    values = {field: getattr(stop, field) for field in ORDER}
    said = {field for field, value in values.items() if value not in (None, (), "") and value is not False}
    said |= {field for field in CHANGES if field in shared}  # else those of every stop would hold
    filled = {field: value for field, value in values.items() if field in said}
    for field, value in filled.items():
        given = [*value] if isinstance(value, tuple) else value
        if isinstance(value, str | tuple) and FIELDS[field].read(given) is None:
            raise InputError(f"no lecture holds a {field} as long as this one: {LONGEST:,} characters at most")
    text = section(next(name for name in names if name not in taken), filled)
    data = (before + ("\n" if before else "") + text).encode("utf-8", errors="replace")
    if len(known) == MOST_STOPS or len(data) > LARGEST:
        raise InputError(f"{shown_path(path)}: the lecture is full, with {len(known):,} stops: begin another file")
    write_whole(path, data)
    return len(known) + 1


def section(name: str, values: Mapping[str, Any]) -> str:
    """A table of TOML."""

    def written(value: object) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(written, value))}]"
        # JSON's strings are TOML's, but for DEL, and where characters are not written as pairs.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    return "\n".join([f"[{name}]", *(f"{field} = {written(value)}" for field, value in values.items())]) + "\n"
