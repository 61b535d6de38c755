"""`patch`: a step with values that another sentence gives it, and what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui_transformer.cli import experiment
from tui_transformer.cli.commands.patch import Request
from tui_transformer.cli.experiment import parse_positions
from tui_transformer.cli.metrics import chosen
from tui_transformer.cli.output import emit
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.cli.session import edits_of, open_session, read
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.names import find
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.model.options import Reading
from tui_transformer.session.open_session import session_of
from tui_transformer.session.session import Session


def run(request: Request) -> None:
    """Show what follows from the patch.

    Raises:
        InputError: The two sentences do not have the same rows or heads, or one cannot be read.
    """
    if (request.from_text is None) == (request.from_ids is None):
        raise UsageError("give either --from-text or --from-ids: the sentence that the values come from")
    session = open_session(request)
    if request.each is not None:
        from tui_transformer.cli import patch_table

        patch_table.run(session, _other(session, request), request)
        return
    if request.of is not None:
        raise UsageError("--of is of --each: name the step itself")
    if request.step is None:
        raise UsageError("name a step, or a table with --each position, head or layer")
    if request.format == "svg":
        raise UsageError("svg is a format of --each: use text, json or csv")
    program = session.trace.program
    names = find((*program.names, *program.weights), request.step)
    if len(names) > 1:
        raise UsageError(f"{len(names)} steps match {request.step!r}: write the whole name of one")
    edits = list(_patches(session.trace, _other(session, request), names[0], request))
    what = [f"{names[0]}{_part(request)} from {request.from_text or request.from_ids}"]
    positions = parse_positions(request.position, session.trace)
    metric = chosen(session, request)
    emit(experiment.FORMATS[request.format](experiment.run(session, what, edits, positions, metric)))


def _other(session: Session, request: Request) -> Trace:
    """The trace of the other sentence, framed alike, with the same edits; a decoder has written the same."""
    ids = None if request.from_ids is None else parse_ids(request.from_ids, "--from-ids")
    reading = Reading(request.from_text, ids, mask=request.token_mask(), decoder_ids=session.decoder_ids)
    reading = replace(reading, decoder_text=session.decoder_text or None)
    other = session_of(session.model, reading, request.options())
    if request.from_text is not None:
        read(other.model, other.encoding, "the other sentence", other.framed.length(0))
    return other.base.edited(edits_of(request, other.model, other.base.program))


def _patches(trace: Trace, other: Trace, name: str, request: Request) -> Iterator[Patch]:
    for rows in _runs(request.rows, "--rows"):
        for heads in _runs(request.head, "--head"):
            yield Patch.between(trace, other, name, rows, heads)


def _runs(text: str | None, option: str) -> Sequence[range | None]:
    """Numbers as runs of neighbours; one None where all are meant."""
    if text is None:
        return (None,)
    if not re.fullmatch(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*", text):
        raise UsageError(f"{option}: {text[:40]!r} are no numbers from 0: write them as 3 or 3,5")
    numbers = sorted(set(map(int, text.split(","))))
    starts = [number for number in numbers if number - 1 not in numbers]
    stops = [number + 1 for number in numbers if number + 1 not in numbers]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _part(request: Request) -> str:
    parts = (("rows", request.rows), ("heads", request.head))
    return "".join(f", {name} {given}" for name, given in parts if given is not None)
