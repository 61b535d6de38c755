"""Numbers and amounts as they are written on the command line."""

from __future__ import annotations

import glob
import re

import typer

from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import parse_size


def parse_ids(text: str, option: str = "--ids") -> tuple[int, ...]:
    """Token IDs between commas or spaces."""
    pieces = _pieces(text)
    for piece in pieces:
        if not re.fullmatch(r"-?[0-9]{1,18}", piece):
            raise UsageError(f"{option}: {piece[:40]!r} is not a token ID: write whole numbers, as 4,5,6")
    if not pieces:
        raise UsageError(f"{option}: there is no token ID: write whole numbers, as 4,5,6")
    return tuple(map(int, pieces))


def parse_targets(text: str | None, positions: int) -> tuple[int, ...]:
    """The token IDs of `--targets`, one for every position, where a minus sign of typography is one, too."""
    targets = parse_ids((text or "").replace("−", "-"), "--targets")
    if len(targets) != positions:
        raise InputError(f"--targets: {len(targets)}, where {positions} belong: give one a position, -1 for none")
    return targets


def parse_mask(text: str) -> tuple[int, ...]:
    """Ones and zeros between commas or spaces."""
    pieces = _pieces(text)
    wrong = next((piece for piece in pieces if piece not in ("0", "1")), "" if pieces else text)
    if wrong or not pieces:
        raise UsageError(f"--mask: {wrong[:40]!r} is neither 1 nor 0: write one for every token, as 0,0,1,1,1")
    return tuple(map(int, pieces))


def _pieces(text: str) -> list[str]:
    return [piece for piece in re.split(r"[,\s]+", text) if piece]


def parse_budget(text: str) -> int:
    """Bytes from a number and a unit: `512MiB`, `2 GiB`, `0`."""
    size = parse_size(text)
    if size is None:
        raise UsageError(f"--budget: {text[:40]!r} is not an amount of memory: write 512MiB, 2GiB or 0")
    return size


def parse_cell(text: str, option: str) -> tuple[int, int]:
    """A cell as ROW,COLUMN."""
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*", text)
    if match is None:
        raise UsageError(f"{option}: {text[:40]!r} is not a cell: write ROW,COLUMN, as 4,1")
    return int(match[1]), int(match[2])


USUAL = "question"
"""The model that is meant where none is named."""


def vocabularies(incomplete: str) -> list[str]:
    """Built-in vocabularies, and files."""
    from tui_transformer.text.vocabulary import built_in_vocabularies

    return _matching(built_in_vocabularies(), incomplete) + _files(incomplete)


def models(incomplete: str) -> list[str]:
    """Built-in models, and folders."""
    from tui_transformer.model.loading import BUILT_IN
    from tui_transformer.model.local_models import trained_models

    return _matching((*BUILT_IN, *trained_models()), incomplete) + _files(incomplete)


def steps(context: typer.Context, incomplete: str) -> list[str]:
    """The steps and weights of the model that the line names; none where it cannot be loaded."""
    from tui_transformer.model import Model

    try:
        program = Model.load(context.params.get("model") or USUAL).program(1)
    except InputError:
        return []
    return _matching((*program.names, *program.weights), incomplete)


def _matching(names: tuple[str, ...], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    return sorted(glob.glob(glob.escape(incomplete) + "*"))  # noqa: PTH207 - the beginning of a name, not a folder
