"""Diagnose a dump: which step is wrong, and what is wrong with it."""

from __future__ import annotations

import contextlib
import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tui_transformer.diagnosis.causes import CAUSES, Cause
from tui_transformer.diagnosis.diagnosis import Compared, Diagnosis, First, Verdict, hint, sizes_of
from tui_transformer.diagnosis.dumps.dump import FLOAT32_UNIT, Dump, role_of
from tui_transformer.diagnosis.local import ROUNDED, Given, Local, dropped, given_by, local, rounded, segment_of
from tui_transformer.diagnosis.matching import Entry, Matched, Planned, match
from tui_transformer.diagnosis.naming import names_for
from tui_transformer.diagnosis.naming.words import kind, spelled
from tui_transformer.diagnosis.reference_values import Difference, Input, Reference, reference_values
from tui_transformer.engine.names import SHOWN, listed
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.records import replace
from tui_transformer.text.display import visible

NEAREST = 5
FEWER = 3
MOST_LATER = 4
"""Names that are listed, and guesses that are given, where nothing is called as expected."""


class NothingMatchedError(InputError):
    """No array of a dump is a step; `plan`: what was tried."""

    def __init__(self, message: str, plan: Sequence[Planned]) -> None:
        super().__init__(message)
        self.plan = plan


def diagnose(
    dump: Dump,
    model: Model,
    given: Input | None = None,
    *,
    names: str = "auto",
    own: Mapping[str, str] | None = None,
    tolerance: float | None = None,
    report: Report = lambda _: None,
) -> Diagnosis:
    """Compare a dump with a model, find the first step that is wrong, and the mistake that explains it.

    Args:
        dump: What somebody else's program computed.
        model: What is right.
        given: What the model reads; what is left out, as the dump says it.
        names: The convention of the names in the dump, a key of `naming.CONVENTIONS`.
        own: Names of the dump → steps, before any convention.
        tolerance: Cells differ by |a − b| > tolerance · max(1, |a|, |b|); by default what rounding explains.
        report: Told what is done next; may raise to end it.

    Raises:
        InputError: No array is a step, or the model cannot read the input.
    """
    reference = reference_values(model, input_of(dump, model, given))
    report("names")
    matched = match(dump, names_for(model, reference.program, names, own), reference)
    if not matched.entries:
        raise NothingMatchedError(_nothing(dump, matched, reference.program), matched.plan)
    compared, first = judge(matched.entries, reference, tolerance, report)
    if first is None:
        for step, name, reason in matched.misfits:
            if spelled(name).endswith(spelled(step)):
                says = f"{step} has another shape: {name} is {reason}: was it computed for the same tokens and sizes?"
                first = First(step, name, (), (np.nan, np.nan), np.inf, np.inf, 0.0, False, None, says)  # noqa: FBT003
                break
    theirs = {entry.step: entry.array for entry in matched.entries}
    steps = reference.program.steps
    return Diagnosis(
        compared,
        matched.unmatched,
        tuple(step.name for step in steps if step.name not in theirs and not step.op.integer),
        _assumed(dump, matched),
        first,
        reference.exact,
        theirs,
        frozenset(entry.step for entry in matched.entries if entry.known is not None),
        matched.plan,
    )


def judge(
    entries: Sequence[Entry], reference: Reference, tolerance: float | None = None, report: Report = lambda _: None
) -> tuple[tuple[Compared, ...], First | None]:
    """Every entry beside the right values, and the first that is wrong.

    Where all numbers have few bits, these are granted: what else is wrong is looked for behind them.

    Entries are in the order of the program, each under a name of its own; the rest is as of `diagnose`.
    """
    compared, first = _judged(entries, reference, tolerance, report)
    precision = ROUNDED.get(first.cause or "") if first else None
    if precision is None:
        return compared, first
    granted = [replace(entry, precision=precision) for entry in entries]
    compared_so, behind = _judged(granted, reference, tolerance, report)
    if behind is None or behind.cause is None or behind.cause in ROUNDED:
        return compared, first
    return compared_so, replace(behind, says=f"{behind.says} (Its numbers are rounded to {precision.name}.)")


def _judged(
    entries: Sequence[Entry], reference: Reference, tolerance: float | None, report: Report
) -> tuple[tuple[Compared, ...], First | None]:
    # roundings are of few bits in all of the program where some numbers of few bits were not only stored so: products
    # alone may have few bits, and norms, sums and softmax are kept in float32
    unit = FLOAT32_UNIT
    for each in entries:
        stored = replace(each.precision, unit=FLOAT32_UNIT)
        if each.precision.unit > unit and reference.difference(each.step, each.array, each.known, stored).beyond:
            unit = each.precision.unit
    entries = [
        replace(each, precision=replace(each.precision, unit=max(each.precision.unit, unit))) for each in entries
    ]
    coarse = tolerance is None and any(entry.precision.unit > FLOAT32_UNIT for entry in entries)
    differences = {}
    for entry in entries:
        limit = None
        if tolerance is not None:
            sizes = np.maximum(np.abs(entry.array), np.abs(reference.value(entry.step)))
            limit = tolerance * np.maximum(1.0, np.where(np.isfinite(sizes), sizes, 1.0))
        step, theirs, known, precision = entry.step, entry.array, entry.known, entry.precision
        differences[entry.theirs] = reference.difference(step, theirs, known, precision, limit)
    first, verdicts = _isolated(entries, differences, reference, report, coarse=coarse)
    compared = (
        Compared(each.step, each.theirs, differences[each.theirs], reference.noise(each.step), verdicts[each.theirs])
        for each in entries
    )
    return tuple(compared), first


def input_of(dump: Dump, model: Model, given: Input | None = None) -> Input:
    """The input of the model: as given, and the rest as the dump says it.

    Raises:
        InputError: The token IDs are said by neither.
    """
    given = Input(None) if given is None else given
    ids = dump.ids if given.ids is None else given.ids
    if ids is None and model.config.vocab_size:
        raise InputError(
            f"{dump.path}: holds no token IDs (input_ids, tokens): give the sentence with --text, or --ids"
        )
    decoder, segments = given.decoder_ids, given.segments
    if decoder is None and model.has_decoder:
        decoder = dump.decoder_ids
    if segments is None and "input.segments" in model.program(1).givens:
        segments = dump.whole_numbers("segments")
    mask = dump.whole_numbers("mask") if given.mask is None else given.mask
    labels = dump.whole_numbers("labels")
    alone = not model.has_decoder and any(step.name.startswith("decoder.") for step in model.program(1).steps)
    return Input(
        ids if model.config.vocab_size else None,
        decoder if model.has_decoder else None,
        segments,
        None if mask is None else mask.astype(np.bool_),
        (dump.whole_numbers("targets") if labels is None else labels) if "loss" in dump.tensors else None,
        int(labels is not None and alone),  # the logits of a decoder alone are of the next token
    )


def _isolated(
    entries: Sequence[Entry],
    differences: Mapping[str, Difference],
    reference: Reference,
    report: Report,
    *,
    coarse: bool,
) -> tuple[First | None, dict[str, Verdict]]:
    """The first step that is wrong for the inputs that the dump has, and what each of the others is.

    `coarse`: numbers have few bits, so that large differences are granted in the end: every step is looked at.
    """
    verdicts: dict[str, Verdict] = {entry.theirs: "agrees" for entry in entries}
    differing = [entry for entry in entries if differences[entry.theirs].beyond]
    if not differing and not coarse:
        return None, verdicts
    given = given_by(entries, reference)
    earliest: Local | None = None
    later: list[Local] = []
    last = max((i for i, entry in enumerate(entries) if coarse or differences[entry.theirs].beyond), default=0)
    for entry in entries[: 1 + last]:
        report(entry.step)
        differs = differences[entry.theirs].beyond
        if not differs and earliest is not None:
            continue
        where = local(entry, given, reference)
        wrong = where.difference().beyond
        if earliest is None and wrong:
            earliest = where
            verdicts[entry.theirs] = "first"
        elif differs:
            verdicts[entry.theirs] = "wrong" if wrong else "follows"
            later += [where] if wrong else []
    if earliest is None:
        alone = next((entry for entry in differing if entry.precision.unit <= FLOAT32_UNIT), None)
        if alone is None:
            return None, verdicts  # every step is right for its inputs: coarse roundings add up
        earliest = local(alone, {}, reference)  # its inputs in the dump are too coarse to tell
        verdicts[alone.theirs] = "first"
    cause = cause_of(earliest, later[:MOST_LATER], report)
    return _first(earliest, cause, entries, given, differences, reference), verdicts


def _first(
    where: Local,
    cause: Cause | None,
    entries: Sequence[Entry],
    given: Given,
    differences: Mapping[str, Difference],
    reference: Reference,
) -> First:
    """The first wrong step in a sentence or two: how far it is off, what is known of its inputs, and why."""
    entry, difference = where.entry, differences[where.entry.theirs]
    nearest = segment_of(entry, given, reference).sources
    sources = [each for each in entries if each.step in nearest]
    before = sources or [
        each for each in entries if entry.step in reference.program.downstream([each.step]) - {each.step}
    ]
    agree = all(not differences[each.theirs].beyond for each in before)
    relative = max((differences[each.theirs].relative for each in before), default=None)
    known = bool(sources) or len(where.segment.steps) <= 2  # its inputs are there whole, or token IDs alone
    if not agree:
        inputs = "its inputs differ too, but do not explain it"
    elif relative is None:
        inputs = "" if known else "nothing that it is computed from is in the dump"
    else:
        inputs = "inputs agree" if known else "what is in the dump of its inputs agrees"
        inputs += "" if relative == 0 else f" to {relative:.0e}"
    theirs, ours = (f"{value:.4g}".replace("-", "−").replace("inf", "∞") for value in difference.values)
    size = f"{theirs} where the model has {ours}"
    if np.isfinite(difference.largest):
        size = f"relative {difference.relative:.2g}"
    elif any(map(np.isnan, difference.values)):
        size = "one side is not a number"
    says = f"{entry.step} differs first ({size}{', ' if inputs else ''}{inputs})."
    if cause is not None:
        says = f"{says} It matches {cause.says}."
    else:
        guess = hint(entry, reference.value(entry.step), where.counted, sizes_of(reference.program))
        says = f"{says} No known mistake explains it{f': {guess}' if guess else ''}."
    return First(
        entry.step,
        entry.theirs,
        difference.index if reference.batch > 1 else difference.index[1:],
        difference.values,
        difference.largest,
        difference.relative,
        reference.noise(entry.step),
        agree and known,
        None if cause is None else cause.name,
        says,
    )


def _assumed(dump: Dump, matched: Matched) -> tuple[str, ...]:
    coarse = dict.fromkeys(entry.precision.name for entry in matched.entries)
    said = [*dump.notes, *(f"numbers have {name}" for name in coarse if name not in ("float32", "float64"))]
    about: dict[str, list[str]] = {}
    for entry in matched.entries:
        for name, words in entry.assumed:
            about.setdefault(words, []).extend([name] if name else [])
        if entry.known is not None:
            known = in_percent(float(np.mean(entry.known)), ".0%")
            about.setdefault(f"{known} of the cells are there", []).append(entry.theirs)
    for words, names in about.items():
        said.append(f"{listed([*dict.fromkeys(names)], FEWER)}: {words}" if names else words)
    return tuple(dict.fromkeys(said))


def _nothing(dump: Dump, matched: Matched, program: Program) -> str:
    """No array is a step: the names of both sides, and the nearest of them."""
    if matched.misfits:
        step, name, reason = matched.misfits[0]
        return f"{dump.path}: {visible(name)} would be {step}, but {reason}: give the token IDs that it is of"
    theirs = [name for name, tensor in dump.tensors.items() if not role_of(tensor)]
    ours = [name for name in program.names if not program.step(name).op.integer]
    guesses = []
    for name in theirs[:SHOWN]:
        near = difflib.get_close_matches(name.lower(), [each.lower() for each in ours], 1, 0.3)
        guesses += [f"{visible(name)} ~ {near[0]}"] if near else []
    nearest = f"; nearest: {', '.join(guesses[:NEAREST])}" if guesses else ""
    return (
        f"{dump.path}: no name in it is a step: it has {visible(listed(theirs))}; the model has {listed(ours)}"
        f"{nearest}: say what is what in a file of lines `name = step`, and give it with --map"
    )


ALIKE = 2.0
"""Mistakes that leave up to so many times as much as the best are alike: the first of them is named."""

Report = Callable[[str], None]


def cause_of(where: Local, later: Sequence[Local] = (), report: Report = lambda _: None) -> Cause | None:
    """The mistake with which a step matches; None where none of those that are known does.

    Several may leave the same numbers there; then the one is named that explains most of the later wrong steps too.
    """
    wider = replace(where, segment=where.segment.wider)
    fitting = _fitting(where, report) or _fitting(wider, report, ("-missing", "-twice", "-unscaled"))
    if not fitting:
        segment, theirs = where.segment, where.entry.array
        return dropped(segment, theirs, where.counted) or rounded(segment, theirs, where.entry.precision, where.counted)
    if len(fitting) == 1:
        return fitting[0]
    names = {cause.name for cause in fitting}
    also = Counter(cause for each in later for cause in {fit.name for fit in _fitting(each, report)} & names)
    return max(fitting, key=lambda cause: also[cause.name])


def _fitting(where: Local, report: Report, ends: tuple[str, ...] = ("",)) -> list[Cause]:
    """The mistakes with which a step matches about as well as with the best of them, one a name, in their order."""
    fitting: list[tuple[float, Cause]] = []
    for causes in CAUSES:
        for cause in filter(lambda each: each.name.endswith(ends), causes(where.segment)):
            report(cause.name)
            with contextlib.suppress(ValueError, IndexError, FloatingPointError):  # it cannot be made there
                difference = where.difference(cause.change)
                if not difference.beyond:
                    fitting.append((difference.rms, cause))
    best = min((rms for rms, _ in fitting), default=0.0)
    by_name: dict[str, list[Cause]] = {}
    for cause in (cause for rms, cause in fitting if rms <= ALIKE * best):
        by_name.setdefault(cause.name, []).append(cause)

    def reach(cause: Cause) -> int:
        """How many kinds of steps and weights it changes: what changes the fewest explains the same better."""
        return len({kind(name) for name in (*cause.change.steps, *cause.change.weights)})

    return [min(each, key=reach) for each in by_name.values()]
