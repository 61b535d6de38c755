"""`survey`: measures over many texts, in processes of this machine or on Ray."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.survey.batch import Asked, check_asked
from tui_transformer.analysis.survey.measures import USUAL, chosen
from tui_transformer.analysis.survey.sums import Counts, Sums
from tui_transformer.analysis.survey.table import Origin, examples, rows
from tui_transformer.cli import progress
from tui_transformer.cli.commands.survey import Request
from tui_transformer.cli.metrics import token_ids
from tui_transformer.cli.output import note
from tui_transformer.cli.progress import Escape, escape, stopping
from tui_transformer.engine.number_format import in_percent
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, is_file, is_there
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.processes import in_processes
from tui_transformer.survey.results import Results, check_out, write_results
from tui_transformer.survey.running import Job, Progress, Spread, state_path
from tui_transformer.survey.running import run as run_job
from tui_transformer.survey.work import STDIN, Work, check_files
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import named
from tui_transformer.text.vocabulary import built_in_vocabularies

LAYERS = re.compile(r"\s*([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?\s*")
SECONDS = 0.2
"""Between two lines that say how far it is."""

INTERRUPTED = 130
"""The exit code after ctrl+c, and after esc."""


def run(request: Request) -> None:
    """Measure the texts and write the results; where it is stopped, of the texts so far.

    Raises:
        InputError: A text, the model or a file cannot be used; what was done is kept.
    """
    check_out(request.out)
    check_files(request.files)
    job, spread = _job(request), _spread(request)
    note(f"{_about(job)}; esc or ctrl+c stops it, and keeps what is done")
    keys = nullcontext(Escape()) if STDIN in request.files else escape()
    with stopping() as stop, keys as key:
        line = Line(_bytes(request.files))
        try:
            sums, whole = run_job(job, spread, lambda: bool(stop) or key.pressed, line.tell)
        finally:
            progress.show(None)
    _finish(job, sums, whole=whole)
    if not whole:
        raise typer.Exit(128 + stop[0] if stop else INTERRUPTED)


def _job(request: Request) -> Job:
    measures = USUAL if request.measure is None else chosen([name.strip() for name in request.measure.split(",")])
    asked = Asked(measures, parse_layers(request.layers), request.top, request.length)
    vocab = None if request.vocab is None else _anywhere(request.vocab)
    options = ModelOptions(_everywhere(request.model), vocab, request.device, request.dtype, request.seed)
    if request.metric is not None or request.tokens is not None:
        asked = replace(asked, metric=_metric(options, request))
    job = Job(Work(options, asked), tuple(request.files), request.out)
    check_asked(job.work.model, asked)
    return job


def _metric(options: ModelOptions, request: Request) -> tuple[str, tuple[int, ...]]:
    """The metric and its tokens; the loss without a token is on those of every text."""
    tokens = () if request.tokens is None else token_ids(options.load(), request.tokens)
    if request.metric == "loss" and not tokens:
        return "loss", ()
    return Metric.of(request.metric, tokens).name, tokens


def _everywhere(model: str) -> str:
    """The name of a model, which other folders and machines understand: a path from the root."""
    path = expanded(model)
    return str(path.resolve()) if ("/" in model or model in (".", "..")) and is_there(path) else model


def _anywhere(vocab: str) -> str:
    path = expanded(vocab)
    return str(path.resolve()) if vocab not in built_in_vocabularies() and is_there(path) else vocab


def _spread(request: Request) -> Spread:
    if request.ray is None:
        return partial(in_processes, count=request.workers or 1)
    from tui_transformer.survey.on_ray import check_ray, on_ray

    check_ray()
    return partial(on_ray, address=request.ray, count=request.workers)


def parse_layers(text: str | None) -> frozenset[int] | None:
    """Layers as `0,3-5`; None for all.

    Raises:
        UsageError: A piece is no layer.
    """
    if text is None:
        return None
    layers: set[int] = set()
    for piece in text.split(","):
        match = LAYERS.fullmatch(piece)
        if match is None:
            raise UsageError(f"--layers: {piece[:40]!r} is no layer: write them as 0,3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(f"--layers: {piece[:40]!r} ends before it begins: write the smaller one first")
        layers.update(range(first, last + 1))
    return frozenset(layers)


def _about(job: Job) -> str:
    """The measures and the model of a survey, and whether it goes on with what was saved."""
    asked, path = job.work.asked, state_path(job.out)
    what = f"{', '.join(asked.measures)} of {visible(job.work.model.name)}"
    return f"goes on with what {shown_path(path)} holds: {what}" if is_there(path) else what


def _finish(job: Job, sums: Sums, *, whole: bool) -> None:
    """Write the results, and say what they are of."""
    path, options = state_path(job.out), job.work.options
    if sums.counts.texts:
        of = Origin(options.model, options.vocab or "", options.seed, options.dtype)
        results = Results(tuple(rows(sums, of)), tuple(examples(sums, of)))
        written = write_results(job.out, results)
        note(f"{_counted(sums.counts)}; wrote {' and '.join(map(shown_path, written))}")
        unknown = _unknown(sums.counts, job.work.model.name)
        if unknown:
            note(unknown)
    elif whole:
        raise InputError("there is no text in what was read: every line is empty, or has no token")
    if whole:
        path.unlink(missing_ok=True)
    else:
        again = "the same command goes on" + (", given the same texts" if STDIN in job.files else "")
        note(f"stopped after {sums.counts.texts:,} texts, which {shown_path(path)} holds: {again}")


def _counted(counts: Counts) -> str:
    parts = [f"{counts.texts:,} text{'s' * (counts.texts != 1)}", f"{counts.tokens:,} tokens"]
    if counts.cut:
        parts.append(f"{counts.cut:,} cut at the end")
    if counts.left_out:
        parts.append(f"{counts.left_out:,} without a token left out")
    return ", ".join(parts)


def _unknown(counts: Counts, model: str) -> str:
    """The words that the vocabulary does not know, counted and named; "" where all are known."""
    if not counts.unknown:
        return ""
    are = "is" if counts.unknown == 1 else "are"
    words = named([word for _, _, word in counts.unknown_words])
    return f"{counts.unknown:,} of the tokens {are} not in the vocabulary of {visible(model)}: {words}"


def _bytes(files: Sequence[str]) -> int | None:
    """How many bytes there are to be read; None where that is not known."""
    if any(name == STDIN or not is_file(Path(name)) for name in files):
        return None
    return sum(Path(name).stat().st_size for name in files)


class Line:
    """One line on standard error that says how far it is."""

    def __init__(self, total: int | None) -> None:
        self._total, self._started, self._told = total, time.monotonic(), 0.0

    def tell(self, now: Progress) -> None:
        """Say it, a few times a second."""
        at = time.monotonic()
        if at - self._told >= SECONDS:
            self._told = at
            progress.show(self.text(now, at - self._started))

    def text(self, now: Progress, seconds: float) -> str:
        """The line, after so many seconds."""
        new = now.counts.texts - now.before
        speed = f"{new / seconds:,.1f} texts a second" if new and seconds else "starting"
        share = f" · {in_percent(now.bytes / self._total, '.0%')} read" if self._total else ""
        return f"{now.counts.texts:,} texts · {now.counts.tokens:,} tokens · {speed}{share} · esc stops"
