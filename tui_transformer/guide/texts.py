"""Reads the texts: what each step is, the stops of the tours, and the help of each pane.

A language is a folder beside this file: `steps.toml`, `tours/*.toml` and `help/*.md`. Whatever a translation leaves
out, or cannot be read of it, is taken from English.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from tui_transformer.errors import InputError
from tui_transformer.files import read_toml
from tui_transformer.records import dataclass, fields
from tui_transformer.trained import about

ROOT = Path(__file__).parent
ENGLISH = "en"
ABOUT, EVERY_STOP = "about", "every-stop"
"""The sections of a tour that are no stops."""

LARGEST = 1 << 20

Action = Literal["explain", "vocabulary", "chart"]
Texts = dict[str, dict[str, str]]

_PREFIXES = ("encoder", "decoder", "layer")
_WORDS = ("title", "text")
_SAME_TEXT = ("self_attention", "cross_attention")


@dataclass(frozen=True)
class StepText:
    """The words for one kind of step, sublayer or layer, as plain text.

    `title` is for the list of steps, `label` for the title of a pane, `short` is the formula in a few characters;
    `what`, `why` and `look` are sentences. All but the first two may be empty.
    """

    title: str
    label: str
    short: str = ""
    what: str = ""
    why: str = ""
    look: str = ""


@dataclass(frozen=True)
class Stop:
    """One stop of a tour: what the panel says, and what the screen shows meanwhile.

    `step` is a step name; with `*` it is a pattern, and the first step that matches is meant. `target` is what a
    decoder beside an encoder has written. None leaves a thing as it is.

    What the text asks the reader to do, the stop does: it sets the targets in `ablate`, such as
    "head:encoder.0.self_attention:2", to 0, or replaces words of the sentence (`change`, what and by what); the panel
    says what the answer becomes, at the position `answer` where that is not the model's own. `edits` are written as on
    the command line, `breaks` are names of what is computed otherwise. `cell` is "largest" where
    the stop leads to the cell of the largest gradient, in a backward pass. `notes` are for who gives the lecture.

    With `predict` the reader is asked before the stop shows anything: which word the row looks at, which shape the step
    has, what the row sums to, which sign the cell has, which column is largest. With `features` those of the
    dictionary that comes with the model are steps. With `arrow` the text is of one number: arrows in the matrix point
    at it, and nothing else is said.
    """

    name: str
    title: str
    text: str
    step: str
    head: int | None = None
    row: int | None = None
    column: int | None = None
    sentence: str | None = None
    target: str | None = None
    vocabulary: str | None = None
    positions: str | None = None
    action: Action | None = None
    ablate: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    answer: int | None = None
    cell: Literal["largest"] | None = None
    predict: Literal["word", "shape", "sum", "sign", "largest"] | None = None
    features: bool = False
    arrow: bool = False
    notes: str = ""


@cache
def languages(root: Path = ROOT) -> tuple[str, ...]:
    """The languages that have texts, English first; a folder each in `root`, as in all that follows."""
    names = sorted(path.parent.name for path in root.glob("*/steps.toml"))
    return (ENGLISH, *(name for name in names if name != ENGLISH))


@lru_cache(1 << 12)
def step_text(name: str, language: str = ENGLISH, root: Path = ROOT) -> StepText:
    """The words for a step, sublayer or layer, given its dotted name such as `encoder.0.self_attention.weights`.

    Where a step has none, it may be one of features, which stand behind any step: [features.NAME]. A name without a
    text gets a title made from its last part, and no sentences.
    """
    texts, parts = _steps(root, language), name.split(".")
    key = ".".join("layer" if part.isdecimal() else part for part in parts)
    while key not in texts and key.partition(".")[0] in _PREFIXES and "." in key:
        key = key.partition(".")[2]
    title, of_features = parts[-1].replace("_", " "), f"features.{parts[-1].rstrip('0123456789').rstrip('_')}"
    words = {"title": title, "label": title.capitalize()} | texts.get(key, texts.get(of_features, {}))
    return StepText(**{field.name: words[field.name] for field in fields(StepText) if field.name in words})


def tours() -> tuple[str, ...]:
    """The names of the tours."""
    return tuple(sorted(path.stem for path in (ROOT / ENGLISH / "tours").glob("*.toml")))


def tour(name: str = "encoder", language: str = ENGLISH, root: Path = ROOT) -> tuple[Stop, ...]:
    """The stops of a tour, in order; InputError where there is no such tour.

    A translation gives the titles and texts; where the stops lead is read from the English file alone. In the texts of
    a model that comes with the program, `{loss:.4f}` and the like are the numbers of its `about.toml`. A key is named
    by what it is for, `{key:undo}`, and stays so here: the user may have chosen another.
    """
    if name not in tours():
        raise InputError(f"no tour is named {name!r}; choose one of: {', '.join(tours())}")
    english, own = (_toml(folder / "tours" / f"{name}.toml") for folder in (root / ENGLISH, _folder(language, root)))
    words, facts, stops = _flat(own), about(tour_model(name)), []
    for stop in (each for each in english if each not in (EVERY_STOP, ABOUT)):
        texts = {key: " ".join(english[stop][key].split()) for key in _WORDS}
        filled = {key: _with_facts(words.get(stop, {}).get(key, text), text, facts) for key, text in texts.items()}
        values: dict[str, Any] = {**english.get(EVERY_STOP, {}), **english[stop], **filled}
        lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
        stops.append(Stop(name=stop, **values | lists))
    return tuple(stops)


def tour_question(name: str, language: str = ENGLISH, root: Path = ROOT) -> str:
    """The question that a tour answers; "" where it says none."""
    return _about(name, language, root).get("question", "")


def tour_model(name: str) -> str:
    """The model that a tour is of: the one that it is named after, unless it says another."""
    return _about(name).get("model", name)


def _about(name: str, language: str = ENGLISH, root: Path = ROOT) -> Mapping[str, str]:
    """What a tour says of itself, read without its stops: the first screen asks all tours."""
    files = (folder / "tours" / f"{name}.toml" for folder in (root / ENGLISH, _folder(language, root)))
    english, own = (_flat(_toml(file, only=ABOUT)).get(ABOUT, {}) for file in files)
    return english | own


def help_text(topic: str, language: str = ENGLISH, root: Path = ROOT) -> str:
    """The help of a pane as Markdown; the general help for a topic that has no file."""
    own, english = _folder(language, root), root / ENGLISH
    places = [(own, topic), (english, topic), (own, "general")]
    texts = (_text(folder / "help" / f"{name}.md") for folder, name in places)
    return next((text for text in texts if text.strip()), _text(english / "help" / "general.md"))


def _folder(language: str, root: Path) -> Path:
    return root / (language if language in languages(root) else ENGLISH)


@cache
def _steps(root: Path, language: str) -> Texts:
    """The texts by name; cross attention says what self-attention says, but for the texts of its own."""
    english, words = (_flat(_toml(folder / "steps.toml")) for folder in (root / ENGLISH, _folder(language, root)))
    texts = {key: {**english.get(key, {}), **words.get(key, {})} for key in english | words}
    own, cross = _SAME_TEXT
    same = {key.replace(own, cross): text for key, text in texts.items() if key.startswith(own)}
    return texts | {key: {**text, **texts.get(key, {})} for key, text in same.items()}


def _with_facts(text: str, english: str, facts: Mapping[str, Any]) -> str:
    """A text with the numbers of its model filled in; the English one where it asks for what there is not."""
    if not facts:
        return text
    numbers = {name: _Number(value) for name, value in facts.items() if isinstance(value, float)}
    filled = {**facts, **numbers, "key": _NamedKey()}
    try:
        return text.format_map(filled)
    except (AttributeError, IndexError, KeyError, ValueError):
        return english.format_map(filled)


class _Number(float):
    """A number whose shares are written as everywhere: `99.9 %`."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec).replace("%", " %")


class _NamedKey:
    """Fills `{key:undo}` with itself."""

    def __format__(self, meaning: str) -> str:
        return f"{{key:{meaning}}}"


def _flat(table: Mapping[str, Any], name: str = "") -> dict[str, dict[str, str]]:
    """Nested tables as one table of dotted names, with the texts of each; what is not a text is left out."""
    texts = {key: " ".join(value.split()) for key, value in table.items() if isinstance(value, str) and value.strip()}
    flat = {name: texts} if texts else {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{name}.{key}".lstrip("."))
    return flat


@cache
def _toml(path: Path, only: str = "") -> Mapping[str, Any]:
    """A file's table; empty where the file is missing or broken."""
    try:
        return read_toml(path, LARGEST, only)
    except InputError:
        return {}


@cache
def _text(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def matching(names: Iterable[str], step: str) -> list[str]:
    """The names that a stop's step means: those of the first pattern, of several with | between them, that has any."""
    known = tuple(names)
    found = ([name for name in known if fnmatchcase(name, each)] for each in step.split("|"))
    return next(filter(None, found), [])
