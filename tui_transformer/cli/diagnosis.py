"""A dump beside a model, as text or JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit, emit_json
from tui_transformer.cli.session import loaded, open_session, trace_of_all
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.diagnosis import Compared, Diagnosis, Input, diagnose
from tui_transformer.diagnosis.diagnose import NothingMatchedError
from tui_transformer.diagnosis.dumps import Dump, open_dump
from tui_transformer.diagnosis.matching import Planned
from tui_transformer.diagnosis.naming import read_map
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.names import listed
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.records import dataclass
from tui_transformer.report.numbers import aligned
from tui_transformer.text.display import visible

DIFFERENT, NOT_ALL = 1, 3
"""Exit codes: a step is wrong; what was compared is right, and something with numbers was not compared."""


@dataclass(frozen=True)
class Part:
    """One sentence of a dump, compared.

    Attributes:
        title: Which of several; "" where it is the only one.
        diagnosis: What was found.
        notes: What was taken for granted of its tokens.
    """

    title: str
    diagnosis: Diagnosis
    notes: tuple[str, ...]

    def said(self, words: Iterable[str]) -> list[str]:
        """Words about this sentence."""
        return [f"{self.title}: {each}" if self.title else each for each in words]


def run_diagnosis(
    flags: Flags, path: Path, form: str, *, names: str, own: Path | None, tolerance: float | None, matched: bool
) -> int:
    """Compare every sentence of a dump with the model, and write what was found; the options are those of `diff`.

    Returns:
        The exit code: 0, or 1 where a step is wrong, or 3 where some numbers were not compared.
    """
    dump = open_dump(path)
    sentences = dump, *dump.further
    known, unknown = (None, ()) if own is None else _mapped(own, sentences)
    parts = []
    for number, (sentence, given_flags) in enumerate(zip(sentences, _each(flags, sentences), strict=True), 1):
        model, given, notes = _input(given_flags, sentence)
        try:
            with cleared():
                found = diagnose(sentence, model, given, names=names, own=known, tolerance=tolerance, report=show)
        except NothingMatchedError as error:
            if matched:
                emit(_plan(error.plan))
            raise
        parts.append(Part(f"sentence {number}" if dump.further else "", found, (*unknown, *notes)))
        unknown = ()
    if form == "json":
        emit_json(_as_json(parts, matched=matched), 2)
    else:
        emit(_report(parts, matched=matched))
    if any(part.diagnosis.first is not None for part in parts):
        return DIFFERENT
    return 0 if all(part.diagnosis.same for part in parts) else NOT_ALL


def _mapped(path: Path, sentences: Sequence[Dump]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What names of a dump stand for, and what is said of those that it has not.

    Raises:
        InputError: It has none of them.
    """
    named = read_map(path)
    there = {name for dump in sentences for name in (*dump.tensors, *dump.refused)}
    unknown = [name for name in named if name not in there]
    if unknown and len(unknown) == len(named):
        raise InputError(f"{path}: names nothing that is in the dump: it has {listed([*sentences[0].tensors])}")
    return named, (f"{path} names what is not in the dump: {listed(unknown)}",) if unknown else ()


def _each(flags: Flags, sentences: Sequence[Dump]) -> Iterator[Flags]:
    """The options for each sentence of a dump: of several, its own token IDs."""
    rows = (flags.ids or "").split(";")
    for i, dump in enumerate(sentences):
        own = flags
        if len(sentences) > 1 and flags.ids is not None:
            own = dataclasses.replace(flags, ids=rows[i] if len(rows) == len(sentences) else None)
        if i and dump.ids is None and own.ids is None:
            raise InputError(
                f"{dump.path}: has {len(sentences)} sentences, and no token IDs of sentence {i + 1}: "
                'give those of all with --ids "1,2,3;4,5,6"'
            )
        yield own


def _as_json(parts: Sequence[Part], *, matched: bool) -> dict[str, object]:
    """The findings of all sentences; the first wrong step is that of the first sentence that has one."""
    first = next((part for part in parts if part.diagnosis.first is not None), parts[0])
    missing = (name for part in parts for name in part.diagnosis.missing)
    whole = first.diagnosis.to_json() | {
        "compared": sum(len(part.diagnosis.steps) for part in parts),
        "unmatched": [name for part in parts for name in part.said(part.diagnosis.unmatched)],
        "missing": list(dict.fromkeys(missing)),
        "assumed": [name for part in parts for name in part.said((*part.notes, *part.diagnosis.assumed))],
    }
    if first.title and first.diagnosis.first is not None:
        whole["sentence"] = parts.index(first) + 1
    if matched:
        whole["matched"] = [each.to_json(part.title) for part in parts for each in part.diagnosis.plan]
    return whole


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
    one = flags.item > 0 or (dump.ids is not None and len(dump.ids) == 1)
    named = (session.trace if one else trace_of_all(session)).givens.get
    segments, real = named("input.segments"), named("input.visible")
    return session.model, Input(named("input.ids"), named("decoder.input.ids"), segments, real), assumed


# The report


def _report(parts: Sequence[Part], *, matched: bool) -> Iterator[str]:
    for part in parts:
        diagnosis = part.diagnosis
        if part.title:
            yield f"{part.title}:\n"
        if matched:
            yield from _plan(diagnosis.plan)
        headings = ("step", "in the dump", "shape", "largest", "relative", "RMS", "cosine", "KL", "")
        yield from aligned([headings, *(_row(each, diagnosis) for each in diagnosis.steps)])
        left: dict[str, list[str]] = {}
        for each in diagnosis.plan:
            left.setdefault(each.reason, []).append(each.theirs)
        for reason, names in left.items():
            yield f"not compared ({visible(reason)}): {visible(', '.join(names))}\n" if reason else ""
        if diagnosis.missing:
            yield f"not in the dump: {visible(listed(diagnosis.missing))}\n"
        for assumption in (*part.notes, *diagnosis.assumed):
            yield f"assumed: {visible(assumption)}\n"
    yield _verdict(parts) + "\n"


def _plan(plan: Sequence[Planned]) -> Iterator[str]:
    rows = [("in the dump", "shape", "is", "taken for granted")]
    for each in plan:
        shape = "" if each.shape is None else shape_text(each.shape) or "1"
        said = f"not compared: {each.reason}" if each.reason else each.description
        rows.append((visible(each.theirs), shape, each.step or "–", visible(said)))
    yield from aligned(rows)
    yield "\n"


def _row(each: Compared, diagnosis: Diagnosis) -> tuple[str, ...]:
    difference = each.difference
    theirs = "" if each.theirs == each.step else visible(each.theirs)
    divergence = "" if difference.divergence is None else f"{max(0.0, difference.divergence):.1e}"
    sizes = (f"{value:.2e}" for value in (difference.largest, difference.relative, difference.rms))
    shape = shape_text(diagnosis.trace.program.shape(each.step)) or "1"
    verdict = {"agrees": "", "first": "differs first", "wrong": "wrong itself"}.get(each.verdict, each.verdict)
    return each.step, theirs, shape, *sizes, f"{difference.cosine:.6f}", divergence, verdict


def _verdict(parts: Sequence[Part]) -> str:
    wrong = next((part for part in parts if part.diagnosis.first is not None), None)
    if wrong is None or wrong.diagnosis.first is None:  # what was compared is right; what was not is counted
        count = sum(len(part.diagnosis.steps) for part in parts)
        left = sum(len(part.diagnosis.unmatched) for part in parts)
        compared = "the step that was compared is" if count == 1 else f"the {count} steps that were compared are"
        said = f"{compared} the same, as far as rounding goes"
        more = f"{left} more with numbers {'was' if left == 1 else 'were'} not compared (see above)"
        return f"not all compared: {said}; {more}" if left else f"same: {said}"
    first = wrong.diagnosis.first
    place = f"[{', '.join(map(str, first.index))}]" if first.index else ""
    values = ""
    if not np.isnan(first.values).all():
        theirs, ours = (f"{value:.6g}" for value in first.values)
        values = f"{visible(first.theirs)}{place} is {theirs}, and should be {ours}.\n"
    count = sum(each.verdict in ("follows", "wrong", "differs") for each in wrong.diagnosis.steps)
    rest = f" {count} more differ after it." if count else ""
    (says,) = wrong.said([first.says])
    return f"{values}{visible(says)}{rest}"
