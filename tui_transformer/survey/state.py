"""The file beside the results that a survey which was stopped goes on from."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_transformer import __version__
from tui_transformer.analysis.survey.batch import Item
from tui_transformer.analysis.survey.sums import Sums
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, write_whole
from tui_transformer.text.files import shown_path

ENDING = ".state"
LARGEST = 1 << 30
"""Bytes that are read."""


def state_path(out: Path) -> Path:
    """The file of a survey whose results go to `out`."""
    return out.with_name(f"{out.name}{ENDING}")


@dataclass(frozen=True, eq=False)
class State:
    """How far a survey is.

    Attributes:
        settings: What is asked, and of which model.
        read: How many texts were read.
        digest: Of those texts, so that others are not taken for them.
        first: The digest of what the first batch gave, so that another model is not taken for this one.
        sums: Of the texts that were read.
    """

    settings: Mapping[str, Any]
    read: int
    digest: str
    first: str
    sums: Sums

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            InputError: It cannot be written.
        """
        more = {"settings": self.settings, "read": self.read, "digest": self.digest, "first": self.first}
        data = self.sums.to_bytes(**more, version=__version__)
        write_whole(path, f"{digest_of(data)}\n".encode() + data)


def load_state(path: Path, settings: Mapping[str, Any]) -> State | None:
    """The state of a survey that was stopped; None where there is none.

    Raises:
        InputError: The file is of another survey, or none.
    """
    if not path.exists():
        return None
    check_regular(path)
    begin = f"remove {shown_path(path)} to begin anew, or name another --out"
    try:
        with path.open("rb") as file:
            sums, more = Sums.from_bytes(_whole(file.read(LARGEST)))  # what is larger was changed
        state = State(more["settings"], int(more["read"]), str(more["digest"]), str(more["first"]), sums)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{shown_path(path)} is not the state of a survey: {begin}") from error
    if state.settings != settings:
        differing = [name for name in settings if state.settings.get(name) != settings[name]]
        raise InputError(f"{shown_path(path)} is of a survey with another {', '.join(differing) or 'setting'}: {begin}")
    return state


def _whole(data: bytes) -> bytes:
    """The content behind its digest.

    Raises:
        ValueError: It was cut or changed.
    """
    digest, _, content = data.partition(b"\n")
    if digest != digest_of(content).encode():
        raise ValueError("cut or changed")
    return content


@dataclass(eq=False)
class Digest:
    """A digest of texts, as they go by."""

    _hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def add(self, items: Iterable[Item]) -> None:
        """Take in some texts."""
        for item in items:
            text = item.source.text.encode("utf-8", "surrogatepass")
            self._hash.update(len(text).to_bytes(8, "little") + text)

    @property
    def value(self) -> str:
        """Of all texts so far."""
        digits: str = self._hash.hexdigest()
        return digits


def digest_of(data: bytes) -> str:
    """The digest of some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def skipped(items: Iterator[Item], state: State, digest: Digest) -> Iterator[Item]:
    """The texts behind those that were read before.

    Raises:
        InputError: These are others now.
    """
    digest.add(itertools.islice(items, state.read))
    if digest.value != state.digest:
        raise InputError("the texts are not those of the survey that was stopped: remove its .state file to begin anew")
    return items
