"""`trace`: every step of a forward pass to an NPZ file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy.random  # noqa: F401 - its import loses an interrupt: do it before anything is written

from tui_transformer.cli.names import match, missing
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import note
from tui_transformer.cli.session import open_session
from tui_transformer.engine.backend import Host
from tui_transformer.engine.keep import readable
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.files import writing
from tui_transformer.report import as_npz


def run(flags: Flags, out: Path, steps: str | None) -> None:
    """Write the steps that match, one at a time, under their names.

    Raises:
        InputError: No step matches, or the file cannot be written; then there is none.
    """
    trace = open_session(flags).trace
    names = trace.names if steps is None else match(trace.names, steps)
    if not names:
        raise InputError(missing(trace.names, steps or ""))
    with writing(out) as file:
        as_npz.write(file, _arrays(trace, names))
    note(f"wrote {out}: {len(names)} steps, {_size(out)}")


def _arrays(trace: Trace, names: tuple[str, ...] | list[str]) -> Iterator[tuple[str, Host]]:
    return ((name, trace[name]) for name in names)


def _size(path: Path) -> str:
    return readable(path.stat().st_size)
