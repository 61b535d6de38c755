"""`survey`: measures over many texts, in processes of this machine or on Ray."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tui_transformer.cli import terminal
from tui_transformer.cli.options import Device, Dtype, Flags, Into, Metric, Tokens, Vocabulary, models
from tui_transformer.cli.output import note
from tui_transformer.cli.typer_layer import argument, option, required
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis.survey.sums import Sums
    from tui_transformer.survey.running import Job, Progress


@dataclass(frozen=True, kw_only=True)
class Survey:
    """Measure heads, neurons and the logit lens over many texts, with confidence intervals and the strongest examples.

    FILES hold a text a line, or JSONL with a `text` in every object; - is standard input. A row of the result is the
    mean over texts of a measure of one head, with its 95 % confidence interval and how many texts have it. What is done
    is kept when esc or ctrl+c stops it; the same command goes on. Whatever the workers are, the result is the same to
    the last bit. With --features FILE the features of a dictionary are measured: how strong and how frequent each is,
    and where it is strongest.

    Example: tui-transformer survey text.txt --model story --measure induction,previous --workers 2 --out heads.csv
    """

    files: list[str] = argument("Text files, JSONL files, or -.", metavar="FILES…")
    out: Path = required("The results: FILE.csv, FILE.json or FILE.parquet.", metavar="FILE")
    model: str = option(
        Flags.usual,
        "A trained model, a built-in one of random weights, or a checkpoint's folder.",
        metavar="FOLDER|NAME",
        autocompletion=models,
    )
    measure: str | None = option(
        None,
        "entropy, previous, first, itself, separators, induction (all six by default), distance, kind, "
        "ablation, ablation-mean, lens, neurons, context, features. May be given again.",
        several=True,
        metavar="NAME,…",
    )
    metric: Metric = None
    tokens: Tokens = None
    features: Path | None = option(
        None, "A dictionary of features, which is what is measured where --measure names nothing.", metavar="FILE"
    )
    at: str | None = option(
        None, "The step that it reads; by default that of the hook that the file names.", metavar="STEP"
    )
    into: Into = None
    layers: str | None = option(None, "Only these layers. May be given again.", several=True, metavar="0,3-5")
    workers: int | None = option(None, "Processes, each with the model and on one core.  [default: 1]", min=1)
    ray: str | None = option(
        None, "On Ray: here, or on a cluster: HOST:PORT, ray://HOST:PORT, auto.", metavar="[ADDRESS]"
    )
    top: int = option(5, "Strongest examples of every head that are kept.", min=0, max=100)
    length: int = option(512, "Longer texts are cut to so many tokens.", min=1)
    vocab: Vocabulary = None
    seed: int | None = option(None, "Seed of the random weights of a built-in model.")
    device: Device = "auto"
    dtype: Dtype = "float32"

    def run(self) -> None:
        from tui_transformer.files import is_file, is_there
        from tui_transformer.survey.processes import spread_of
        from tui_transformer.survey.results import check_out
        from tui_transformer.survey.running import run, state_path
        from tui_transformer.survey.work import STDIN, check_files
        from tui_transformer.text.files import shown_path

        check_out(self.out)
        check_files(self.files)
        job = self._job()
        spread = spread_of(self.workers or (1 if self.ray is None else None), self.ray)
        path = state_path(job.out)
        what = f"{', '.join(job.work.asked.measures)} of {visible(job.work.model.name)}"
        about = f"goes on with what {shown_path(path)} holds: {what}" if is_there(path) else what
        note(f"{about}; esc or ctrl+c stops it, and keeps what is done")
        keys = terminal.escape(taken=STDIN in self.files)
        with terminal.stopping() as stop, keys as pressed, terminal.cleared():
            known = not any(name == STDIN or not is_file(Path(name)) for name in self.files)
            total = sum(Path(name).stat().st_size for name in self.files) if known else None
            line, started = terminal.Line(notes=False), time.monotonic()

            def tell(now: Progress) -> None:
                line.tell(how_far(now, total, time.monotonic() - started))

            sums, whole = run(job, spread, lambda: bool(stop) or pressed(), tell)
        _finish(job, sums, whole=whole)
        if not whole:
            raise typer.Exit(128 + stop[0] if stop else terminal.INTERRUPTED)

    def _job(self) -> Job:
        from tui_transformer.analysis import metrics
        from tui_transformer.analysis.survey.measures import USUAL, Asked, check_asked, chosen
        from tui_transformer.cli.metrics import token_ids
        from tui_transformer.model.options import ModelOptions
        from tui_transformer.survey.running import Job
        from tui_transformer.survey.work import Dictionary, Work
        from tui_transformer.text.vocabulary import built_in_vocabularies

        usual = USUAL if self.features is None else ("features",)
        measures = usual if self.measure is None else chosen([name.strip() for name in self.measure.split(",")])
        asked = Asked(measures, parse_layers(self.layers), self.top, self.length)
        vocab = self.vocab if self.vocab is None or self.vocab in built_in_vocabularies() else _anywhere(self.vocab)
        options = ModelOptions(_everywhere(self.model), vocab, self.device, self.dtype, self.seed)
        if self.metric is not None or self.tokens is not None:
            tokens = () if self.tokens is None else token_ids(options.load(), self.tokens)
            of_every_text = self.metric == "loss" and not tokens  # the loss of its own tokens
            name: metrics.MetricName = "loss" if of_every_text else metrics.Metric.of(self.metric, tokens).name
            asked = replace(asked, metric=(name, tokens))
        if self.features is None and (self.at is not None or self.into is not None):
            raise UsageError("--at and --into are of a dictionary: name one with --features")
        features = None if self.features is None else Dictionary(_anywhere(str(self.features)), self.at, self.into)
        job = Job(Work(options, asked, features), tuple(self.files), self.out)
        check_asked(job.work.model, asked)
        return job


def _everywhere(model: str) -> str:
    """The name of a model as other folders and machines understand it."""
    return _anywhere(model) if "/" in model or model in (".", "..") else model


def _anywhere(name: str) -> str:
    """A path from the root, where it is one."""
    from tui_transformer.files import expanded, is_there

    path = expanded(name)
    return str(path.resolve()) if is_there(path) else name


def parse_layers(text: str | None) -> frozenset[int] | None:
    """Layers as `0,3-5`; None for all."""
    if text is None:
        return None
    layers: set[int] = set()
    for piece in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?\s*", piece)
        if match is None:
            raise UsageError(f"--layers: {piece[:40]!r} is no layer: write them as 0,3-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(f"--layers: {piece[:40]!r} ends before it begins: write the smaller one first")
        layers.update(range(first, last + 1))
    return frozenset(layers)


def _finish(job: Job, sums: Sums, *, whole: bool) -> None:
    """Write the results, and say what they are of."""
    from tui_transformer.analysis.survey.table import Origin, examples, rows
    from tui_transformer.files import is_there
    from tui_transformer.survey.results import Results, write_results
    from tui_transformer.survey.running import state_path
    from tui_transformer.survey.work import STDIN
    from tui_transformer.text.files import shown_path
    from tui_transformer.text.known_words import named

    path, options, counts = state_path(job.out), job.work.options, sums.counts
    if counts.texts:
        of = Origin(options.model, options.vocab or "", options.seed, options.dtype)
        found = Results.of(rows(sums, of), examples(sums, of, job.work.model))
        there = {row.measure.partition(":")[0] for row in found.rows}
        missing = ", ".join(name for name in job.work.asked.measures if name not in there)
        cut = f": texts are cut to --length {job.work.asked.length:,}" if counts.cut else ""
        missing = f"no text has a number for {missing}{cut}" if missing else ""
        if not found.rows and whole:
            path.unlink(missing_ok=True)  # other settings begin anew
            raise InputError(missing)
        written = write_results(job.out, found) if found.rows else []
        parts = [f"{counts.texts:,} text{'s' * (counts.texts != 1)}", f"{counts.tokens:,} tokens"]
        parts += [f"{counts.cut:,} cut at the end"] if counts.cut else []
        parts += [f"{counts.left_out:,} without a token left out"] if counts.left_out else []
        note(f"{', '.join(parts)}; wrote {' and '.join(map(shown_path, written)) or 'nothing'}")
        if missing:
            note(missing)
        if counts.unknown:
            are, words = "is" if counts.unknown == 1 else "are", named([word for _, _, word in counts.unknown_words])
            of_model = visible(job.work.model.name)
            note(f"{counts.unknown:,} of the tokens {are} not in the vocabulary of {of_model}: {words}")
    elif whole:
        raise InputError("there is no text in what was read: every line is empty, or has no token")
    if whole:
        path.unlink(missing_ok=True)
    elif not is_there(path):
        note("stopped before the first texts were measured: nothing is kept")
    else:
        again = "the same command goes on" + (", given the same texts" if STDIN in job.files else "")
        note(f"stopped after {counts.texts:,} texts, which {shown_path(path)} holds: {again}")


def how_far(now: Progress, total: int | None, seconds: float) -> str:
    """How far a survey is after so many seconds, of so many bytes where that is known."""
    from tui_transformer.engine.number_format import in_percent

    new = now.counts.texts - now.before
    speed = f"{new / seconds:,.1f} texts a second" if new and seconds else "starting"
    share = f" · {in_percent(now.bytes / total, '.0%')} read" if total else ""
    return f"{now.counts.texts:,} texts · {now.counts.tokens:,} tokens · {speed}{share} · esc stops"
