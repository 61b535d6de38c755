"""A dump beside a model, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from tui_transformer.cli.commands.diff import Request
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit
from tui_transformer.cli.progress import show
from tui_transformer.cli.session import loaded, open_session
from tui_transformer.diagnosis import Compared, Diagnosis, Input, diagnose
from tui_transformer.diagnosis.dumps import Dump, open_dump
from tui_transformer.diagnosis.naming import read_map
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.names import listed
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
from tui_transformer.report.table import aligned
from tui_transformer.text.display import visible

VERDICTS = {
    "agrees": "",
    "first": "differs first",
    "follows": "follows",
    "wrong": "wrong itself",
    "differs": "differs",
}


def how_to(subject: str) -> str:
    """The lines that write a dump, for users of a tool."""
    name = f"{subject.replace('.', '_')}.txt"
    return (files("tui_transformer.diagnosis") / "how" / name).read_text(encoding="utf-8")


def run_diagnosis(request: Request, path: Path) -> bool:
    """Write what was found; whether a step is wrong.

    Raises:
        InputError: The dump or the model cannot be read, or no array is a step.
    """
    dump = open_dump(path)
    own = None if request.map is None else read_map(request.map)
    model, given, notes = _input(request, dump)
    try:
        diagnosis = diagnose(dump, model, given, names=request.names, own=own, tolerance=request.tolerance, report=show)
    finally:
        show(None)
    if request.format == "json":
        whole = diagnosis.to_json() | {"assumed": [*notes, *diagnosis.assumed]}
        emit([json.dumps(whole, ensure_ascii=False, indent=2) + "\n"])
    else:
        emit(_report(diagnosis, notes))
    return diagnosis.first is not None


def _input(flags: Flags, dump: Dump) -> tuple[Model, Input | None, tuple[str, ...]]:
    """The model, what it reads where the dump does not say it, and what that assumes."""
    said = any(each is not None for each in (flags.text, flags.ids, flags.decoder_text, flags.decoder_ids))
    if not said and dump.ids is not None:
        mask = flags.token_mask()
        return loaded(flags.options()), None if mask is None else Input(None, mask=np.array([mask], dtype=np.bool_)), ()
    session = open_session(flags)
    if not session.model.config.vocab_size:
        return session.model, None, ()
    assumed = () if said else ("the dump names no token IDs: the example sentence of the model is taken",)
    return session.model, _given(session.trace), assumed


def _given(trace: Trace) -> Input:
    """The input that a trace was computed for."""
    givens = trace.givens
    decoder, segments = (givens.get(name) for name in ("decoder.input.ids", "input.segments"))
    return Input(givens["input.ids"], decoder, segments, givens.get("input.visible"))


# The report


def _report(diagnosis: Diagnosis, notes: Sequence[str]) -> Iterator[str]:
    yield from aligned([HEADINGS, *(_row(each, diagnosis) for each in diagnosis.steps)])
    for title, names in (("not compared, of the dump", diagnosis.unmatched), ("not in the dump", diagnosis.missing)):
        if names:
            yield f"{title}: {visible(listed(names))}\n"
    for assumption in (*notes, *diagnosis.assumed):
        yield f"assumed: {visible(assumption)}\n"
    yield _verdict(diagnosis) + "\n"


HEADINGS = ("step", "in the dump", "shape", "largest", "relative", "RMS", "cosine", "KL", "")


def _row(each: Compared, diagnosis: Diagnosis) -> tuple[str, ...]:
    difference = each.difference
    theirs = "" if each.theirs == each.step else visible(each.theirs)
    divergence = "" if difference.divergence is None else f"{max(0.0, difference.divergence):.1e}"
    sizes = (f"{value:.2e}" for value in (difference.largest, difference.relative, difference.rms))
    shape = shape_text(diagnosis.trace.program.shape(each.step)) or "1"
    return each.step, theirs, shape, *sizes, f"{difference.cosine:.6f}", divergence, VERDICTS[each.verdict]


def _verdict(diagnosis: Diagnosis) -> str:
    first = diagnosis.first
    if first is None:
        return f"same: {len(diagnosis.steps)} arrays agree as far as rounding goes"
    place = f"[{', '.join(map(str, first.index))}]" if first.index else ""
    values = ""
    if not np.isnan(first.values).all():
        theirs, ours = (f"{value:.6g}" for value in first.values)
        values = f"{visible(first.theirs)}{place} is {theirs}, and should be {ours}.\n"
    count = sum(each.verdict in ("follows", "wrong", "differs") for each in diagnosis.steps)
    rest = f" {count} more differ after it." if count else ""
    return f"{values}{visible(first.says)}{rest}"
