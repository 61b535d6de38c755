"""`train`: a run begun or resumed, with its progress on standard error and its result on standard output."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer

from tui_transformer.cli.options import SIZES
from tui_transformer.cli.output import emit, note
from tui_transformer.cli.progress import stopping
from tui_transformer.cli.train_options import Given
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.parts import readable
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.log import Epoch, Log
from tui_transformer.learning.log import check_new as check_new_log
from tui_transformer.learning.loop import Measured, Record, Trainer
from tui_transformer.learning.recipes import recipe as by_name
from tui_transformer.learning.run import Run, check_new
from tui_transformer.learning.settings import Settings, is_run
from tui_transformer.report.numbers import clock
from tui_transformer.text.display import fit, visible

OF_THE_COMMAND = ("out", "resume", "log", "recipe")
_WRITTEN = {"file": "FILE", "task": "--task"}
OF_A_NEW_MODEL = ("architecture", *SIZES)
LOG = "log.jsonl"
"""In the folder of a run whose log has no other place."""

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_DRAWINGS = 0.1
FEW_EPOCHS = 100
"""Epochs of a run that are all told."""


def run(file: Path | None, given: Given) -> None:
    """Begin or resume a run and see it through.

    Raises:
        InputError: It cannot be, or a step or a file goes wrong; the last checkpoint is whole.
    """
    if "out" not in given:
        raise UsageError("--out FOLDER is missing: say where the run and its model are to be kept")
    out, settings = given["out"], _settings(file, given)
    resumes = given["resume"] and (is_run(out) or file is None)
    if "log" in given and not resumes:
        check_new_log(given["log"])
    if given["resume"] and not resumes:
        note(f"{visible(str(out))} holds no run yet: this one begins at step 0")
    if not resumes:
        settings = _complete(out, settings, given.get("recipe"))
    with (
        contextlib.closing(Run.resume(out, settings) if resumes else Run.start(out, Settings(**settings))) as begun,
        contextlib.closing(Log(given.get("log", begun.folder / LOG), begun.trainer.step)) as log,
    ):
        _see_through(begun, log, given.get("log"))


def _settings(file: Path | None, given: Given) -> dict[str, Any]:
    """The settings that were given, by their names."""
    own = (*OF_THE_COMMAND, *OF_A_NEW_MODEL)
    settings = {name: value for name, value in given.items() if name not in own}
    if sizes := {name: given[name] for name in OF_A_NEW_MODEL if name in given}:
        settings["sizes"] = sizes
    files = {"file": file, "vectors": given.get("vectors")}
    return settings | {name: str(path.absolute()) for name, path in files.items() if path is not None}


def _complete(out: Path, settings: dict[str, Any], recipe: str | None) -> dict[str, Any]:
    """The settings of a new run, with those of a recipe."""
    if recipe is not None:
        return _by_recipe(out, settings, recipe)
    if "file" not in settings:
        raise UsageError("FILE is missing: name the text that the model is to learn from")
    if "task" not in settings:
        raise UsageError("--task is missing: use next-word, next-character, masked-word, classify or pairs")
    return settings


def _by_recipe(out: Path, settings: dict[str, Any], name: str) -> dict[str, Any]:
    """The recipe's settings, with those that were given instead; its text is written into the run's folder."""
    for given in ("file", "task"):
        if given in settings:
            raise UsageError(f"--recipe {name} has a text and a task of its own: leave out {_WRITTEN[given]}")
    recipe = by_name(name)
    check_new(out.absolute(), str(out.absolute() / recipe.file))
    text = recipe.write_text(out.absolute())
    return {**recipe.settings, **settings, "file": str(text)}


def _see_through(begun: Run, log: Log, named: Path | None) -> None:
    """Make the steps that are left, and tell the result."""
    trainer = begun.trainer
    if trainer.done:
        raise InputError(f"all {trainer.step:,} steps are made: go on with more, as --steps {2 * trainer.step}")
    note(_about(trainer))
    embedding, words = trainer.model.embedding, trainer.model.vocabulary
    if embedding is not None and embedding.vectors is not None and words is not None:
        note(embedding.vectors.said(words))
    progress = Progress(trainer.settings.steps, trainer.step)
    with stopping() as stop, contextlib.closing(progress):
        while not trainer.done:
            begun.step(log, progress.show)
            if log.epoch is not None:
                progress.end_epoch(log.epoch)
            if stop:
                progress.close()
                _stopped(begun, named, stop[0])
    if progress.last is not None:
        _tell(begun.folder, *progress.last)


def _about(trainer: Trainer) -> str:
    """The model, its text, and the cost of a step."""
    learned, held_out = trainer.data.parts
    parts = (
        trainer.model.config.summary,
        f"{sum(weight.size for weight in trainer.weights.values()):,} weights",
        f"vocabulary {trainer.data.vocabulary.size:,}",
        f"examples: {len(learned):,} to learn from, {len(held_out):,} to validate on",
        f"a step takes up to {readable(trainer.memory)}",
        trainer.model.backend.name,
    )
    return " · ".join(parts)


def _tell(folder: Path, record: Record, measured: Measured | None) -> None:
    """The result, on standard output."""
    rows = {"steps": f"{record.step:,}", "loss": f"{record.loss:.4f}", "accuracy": f"{record.accuracy:.4f}"}
    if measured is not None:
        rows |= {
            "validation loss": f"{measured.loss:.4f}",
            "validation accuracy": f"{measured.accuracy:.4f}",
            "examples all right": f"{measured.exact:.4f}",
            "perplexity": f"{measured.perplexity:.4g}",
        }
    rows["model"] = visible(str(folder))
    emit(f"{name:<20} {value}\n" for name, value in rows.items())


# Stopping


def _stopped(begun: Run, log: Path | None, number: int) -> NoReturn:
    """Save, say how to go on, and end as a signal does."""
    begun.save()
    words = ["tui-transformer", "train", "--resume", "--out", str(begun.folder)]
    words += ["--log", str(log)] if log else []
    note(f"stopped after step {begun.trainer.step:,}, which is saved; go on with: {shlex.join(words)}")
    raise typer.Exit(128 + number)


# Progress


@dataclass
class Progress:
    """Progress on standard error: one line that is rewritten on a terminal, a line now and then elsewhere."""

    steps: int
    first: int
    started: float = field(default_factory=time.monotonic)
    told: float = 0.0
    told_epoch: float = 0.0
    open: bool = False
    last: tuple[Record, Measured | None] | None = None

    @property
    def rewrites(self) -> bool:
        """Whether standard error is a terminal that can."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, record: Record, measured: Measured | None) -> None:
        """Tell how far it is."""
        self.last = record, measured
        now, line = time.monotonic(), self._line(record, measured)
        if self.rewrites:
            if measured is not None or now - self.told > SECONDS_BETWEEN_DRAWINGS:
                self._rewrite(line, end="\n" if measured is not None else "")
                self.told = now
        elif measured is not None or now - self.told > SECONDS_BETWEEN_LINES:
            note(line)
            self.told = now

    def end_epoch(self, epoch: Epoch) -> None:
        """Tell the means of an epoch: of every one where they are few, of many short ones now and then."""
        now, step = time.monotonic(), self.steps if self.last is None else self.last[0].step
        few = epoch.number * self.steps <= FEW_EPOCHS * step
        if few or now - self.told_epoch > SECONDS_BETWEEN_DRAWINGS or step == self.steps:
            self.told_epoch = now
            line = f"epoch {epoch.number:,}: loss {epoch.loss:.4f}, right answers {in_percent(epoch.accuracy, '.2%')}"
            if self.rewrites:
                self._rewrite(line, end="\n")
            else:
                note(line)

    def _line(self, record: Record, measured: Measured | None) -> str:
        """The most important first: a narrow terminal cuts the rest."""
        passed = time.monotonic() - self.started
        left = f"{clock(passed / (record.step - self.first) * (self.steps - record.step))} left"
        speed = f"{record.tokens_per_second:,.0f} tokens/s"
        step, loss = f"step {record.step:,} of {self.steps:,}", f"loss {record.loss:.4f}"
        rest = (f"epoch {record.epoch:.2f}", f"rate {record.learning_rate:.2e}")
        if measured is not None:
            return " · ".join((step, loss, _validated(measured), left, speed, *rest))
        return " · ".join((step, left, speed, loss, f"accuracy {record.accuracy:.3f}", *rest))

    def _rewrite(self, line: str, end: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{fit(line, width)}\x1b[K{end}")
        sys.stderr.flush()
        self.open = not end

    def close(self) -> None:
        """Leave the line that is rewritten."""
        if self.open:
            sys.stderr.write("\n")
            self.open = False


def _validated(measured: Measured) -> str:
    shares = f"accuracy {measured.accuracy:.3f}, perplexity {measured.perplexity:.4g}"
    return f"validation loss {measured.loss:.4f}, {shares}"
