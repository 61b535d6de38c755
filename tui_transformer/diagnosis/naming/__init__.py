"""Names that people give the steps, a file a convention: generated names, and the steps that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tui_transformer.diagnosis.naming.canonical import canonical
from tui_transformer.diagnosis.naming.ggml import ggml
from tui_transformer.diagnosis.naming.modules import modules
from tui_transformer.diagnosis.naming.name import Convention, Table, Target, present, spelled
from tui_transformer.diagnosis.naming.outputs import outputs
from tui_transformer.diagnosis.naming.transformer_lens import transformer_lens
from tui_transformer.diagnosis.naming.words import Headings, numbers_in, plain, words
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.model import Model
from tui_transformer.text.files import read_text

CONVENTIONS: Mapping[str, tuple[Convention, ...]] = {
    "auto": (canonical, outputs, modules, transformer_lens, ggml, words),
    "transformers": (canonical, outputs, modules),
    "transformerlens": (canonical, transformer_lens),
    "ggml": (canonical, ggml),
}
"""By `--names`; those first that say a name most exactly."""

BEHIND = frozenset({"output", "outputs", "out", "result", "hook", "activation", "value", "tensor", "data", "0"})
"""Words that may stand behind the name of a module and change nothing."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DEEPEST = 6
"""So many words may stand in front of the path of a module."""

LARGEST_MAP = 1 << 22


class Spoken(Protocol):
    """A heading, with the layer and the head that it says."""

    @property
    def layer(self) -> str:
        """The layer; "" where none is said."""

    @property
    def head(self) -> str:
        """The head."""

    @property
    def path(self) -> str:
        """All of it, where it is the path of a module."""


@dataclass(frozen=True, eq=False)
class Names:
    """Finds what a name of a dump stands for."""

    tables: tuple[Table, ...]
    own: Mapping[str, Target]

    def find(self, name: str, *, spoken: bool = False) -> tuple[Target, ...]:
        """The targets of a name; none where nobody calls a step so.

        Args:
            name: As it is in the dump.
            spoken: It is a heading in words, in which layers may be counted from 1.
        """
        if name in self.own:
            return (self.own[name],)
        parts = spelled(name).split(".")
        own = _joined(parts, _without_ends(parts))
        whole = tuple(table for table in self.tables if not isinstance(table, Headings))
        if spoken and any(self.first):
            whole = ()
        exact = _meant(whole, own) or _meant(self._headings, [*own, plain(name)])
        return exact or (() if spoken and " " in name else _meant(whole, _without_beginnings(parts)))

    @property
    def _headings(self) -> tuple[Headings, ...]:
        return tuple(table for table in self.tables if isinstance(table, Headings))

    @property
    def first(self) -> tuple[int, int]:
        """The numbers of the first layer and of the first head in headings."""
        return next((table.first for table in self._headings), (0, 0))

    def counted_from(self, layer: int, head: int) -> Names:
        """The same names where headings count layers and heads from other numbers."""
        counted = (
            replace(table, first=(layer, head)) if isinstance(table, Headings) else table for table in self.tables
        )
        return replace(self, tables=tuple(counted))

    def numbers(self, name: str, heading: Spoken | None = None) -> tuple[int | None, int | None]:
        """The layer and the head that a name says in words, as it counts them."""
        if heading is not None and (not heading.path or not self.find(heading.path)):
            return (int(heading.layer) if heading.layer else None, int(heading.head) if heading.head else None)
        if name in self.own or _meant(
            [table for table in self.tables if not isinstance(table, Headings)], [spelled(name)]
        ):
            return None, None
        return numbers_in(spelled(name)) if self._headings else (None, None)


def _meant(tables: Sequence[Table], keys: Sequence[str]) -> tuple[Target, ...]:
    """The targets of the first of these names that is known."""
    for key in filter(None, dict.fromkeys(keys)):
        for table in tables:
            targets = tuple(target for target in table.get(key) or () if target.steps)
            if targets:
                return targets
    return ()


def _joined(*names: Sequence[str]) -> list[str]:
    return [".".join(name) for name in names]


def _without_ends(parts: Sequence[str]) -> Sequence[str]:
    while len(parts) > 1 and parts[-1] in BEHIND:
        parts = parts[:-1]
    return parts


def _without_beginnings(parts: Sequence[str]) -> list[str]:
    """A name without one word in front of it, without two, and so on."""
    keys, trimmed = [], _without_ends(parts)
    for start in range(1, min(len(parts) - 1, DEEPEST)):
        if parts[start - 1] in ("encoder", "decoder"):
            break
        if "".join(parts[:start]).strip(LETTERS) and not "".join(parts[start:]).strip(LETTERS):
            break  # the number of the layer is in front: without it the rest would be of any layer
        keys += _joined(parts[start:], trimmed[start:])
    return keys


def names_for(model: Model, program: Program, convention: str = "auto", own: Mapping[str, str] | None = None) -> Names:
    """The names of a convention, for a program.

    Args:
        model: Whose tensors name the modules.
        program: The steps.
        convention: A key of `CONVENTIONS`.
        own: Names of the dump → steps.

    Raises:
        InputError: One of these is no step.
    """
    tables = tuple(find(model, program) for find in CONVENTIONS[convention])
    return Names(tables, {name: _own(program, step) for name, step in (own or {}).items()})


def _own(program: Program, step: str) -> Target:
    return Target(present(program, program.step(step).name))


def read_map(path: Path) -> dict[str, str]:
    """Names of a dump → steps: a JSON object, or lines `name = step`.

    Raises:
        InputError: The file cannot be read, or has a line without `=`.
    """
    if path.suffix == ".json":
        raw = read_json(path, LARGEST_MAP)
        if not all(isinstance(step, str) for step in raw.values()):
            raise InputError(
                f'{path}: every name stands for one step: {{"my_scores": "encoder.0.self_attention.scores"}}'
            )
        return {str(name): str(step) for name, step in raw.items()}
    named = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        name, sign, step = text.partition("=")
        if not sign or not name.strip() or not step.strip():
            raise InputError(f"{path}: line {number} is not `name = step`")
        named[name.strip()] = step.strip()
    return named


__all__ = ["CONVENTIONS", "Names", "Target", "names_for", "read_map"]
