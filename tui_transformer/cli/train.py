"""`train`: a run begun or resumed, with its progress on standard error and its result on standard output."""

from __future__ import annotations

import contextlib
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from tui_transformer.cli.options import SIZES, Flags
from tui_transformer.cli.output import emit, note
from tui_transformer.cli.terminal import OFTEN, Line, show, stopping
from tui_transformer.cli.typer_layer import argument, flag, like, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import readable
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.learning.dictionary import Plan
    from tui_transformer.learning.log import Epoch, Log
    from tui_transformer.learning.loop import Measured, Record, Trainer
    from tui_transformer.learning.run import Run

OF_FEATURES = ("features", "active", "at")
WITH_FEATURES = (*OF_FEATURES, "file", "recipe", "out", "model", "steps", "batch", "learning_rate", "seed", "device")
"""The options that learning a dictionary of features has."""

OF_A_NEW_MODEL = ("architecture", *SIZES)
OF_A_NEW_VOCABULARY = ("tokens", "vocab_size", "split", "case")
FEW_EPOCHS = 100
"""Epochs of a run that are all told."""


@dataclass(frozen=True, kw_only=True)
@like(Flags, "vocab", *SIZES, "device", "dtype", "seed")
class Train:
    """Train a model on a text file, from the beginning or from where it was stopped.

    The folder --out is then a model as any other. Tasks: next-word, next-character and masked-word read a text;
    classify reads lines of a text, a tab and its label; pairs reads lines of a source, a tab and a target. Loss and
    accuracy are those of the batch; perplexity is e to the cross-entropy on examples that are not learned from.

    With --features a dictionary of so many features of one step of --model is learned in place of a model: a sparse
    autoencoder, whose folder SAELens reads as well.

    Example: tui-transformer train text.txt --task next-word --out run
    """

    file: Path | None = argument(
        "The text; a run that is resumed knows it.", default=None, metavar="FILE", show_default=False
    )
    task: Literal["next-word", "next-character", "masked-word", "classify", "pairs"] | None = option(
        None, "What the model learns to predict."
    )
    recipe: Literal["copy", "dates", "question", "story"] | None = option(
        None, "Train a model that comes with the program again."
    )
    out: Path | None = option(None, "The folder of the run, and of the model.", metavar="FOLDER")
    resume: bool = flag("Go on from the last checkpoint in --out.")
    log: Path | None = option(
        None,
        "A line a step; by default that of the run's folder, or log.jsonl. Lines of steps made again are replaced.",
        metavar="FILE.csv|.jsonl",
    )
    steps: int | None = option(None, "Steps of the optimiser.  [default: 1000]")
    batch: int | None = option(None, "Examples of a batch.  [default: 32]")
    accumulate: int | None = option(None, "Batches of a step.  [default: 1]")
    length: int | None = option(None, "Tokens of an example at most.  [default: 64]")
    learning_rate: float | None = option(None, "The highest of the schedule.  [default: 0.001]")
    optimizer: Literal["adamw", "adam", "sgd"] | None = option(None, "How gradients change weights.  [default: adamw]")
    schedule: Literal["cosine", "inverse-sqrt", "constant"] | None = option(
        None, "The learning rate after the warm-up.  [default: cosine]"
    )
    warm_up: int | None = option(None, "Steps until the learning rate is reached.  [default: 100]")
    clip: float | None = option(None, "Longest norm of all gradients together; 0 for any.  [default: 1.0]")
    dropout: float | None = option(None, "Share of values dropped while training.  [default: 0.1]")
    label_smoothing: float | None = option(None, "Share of a target spread over all words.  [default: 0]")
    weight_decay: float | None = option(None, "Of matrices and embeddings.  [default: 0.01 with adamw, else 0]")
    validation: float | None = option(None, "Share of the examples not learned from.  [default: 0.1]")
    save_every: int | None = option(None, "Steps between checkpoints.  [default: a twentieth of all, at least 10]")
    model: str | None = option(None, "A checkpoint to begin with; by default the model is new.", metavar="FOLDER|NAME")
    tokens: Literal["words", "characters", "bpe"] | None = option(
        None, "What a vocabulary is built of; by default by the task."
    )
    vocab_size: int | None = option(None, "Its entries at most.  [default: 10000]")
    split: Literal["words", "runs", "spaces"] | None = option(
        None,
        "What a word of it is: a run of letters and digits, which an apostrophe may join (words, the default); runs "
        "alone; or whatever stands between spaces.",
    )
    case: Literal["lower", "kept"] | None = option(
        None, "Its words in small letters (the default), or with the capitals that are written."
    )
    embedding: Literal["normal", "uniform", "zeros"] | None = option(
        None,
        "How word vectors of a new model begin: normal, of variance 1 ÷ d_model, rows about 1 long; uniform in "
        "±√(2 ÷ d_model), none far out; zeros, where only positions tell words apart until they are learned.  "
        "[default: normal]",
    )
    vectors: Path | None = option(
        None,
        "Begin with word vectors of GloVe or word2vec for the words of the vocabulary; d_model is theirs.",
        metavar="FILE",
    )
    architecture: Literal["encoder", "decoder", "encoder-decoder"] | None = option(
        None, "Of a new model; by default the task's."
    )

    features: int | None = option(None, "Learn a dictionary of so many features of --model.")
    at: str | None = option(None, "The step whose rows it reads, as decoder.1.output.", metavar="STEP")
    active: int | None = option(None, "How many features are active at a token.  [default: 8]")

    def run(self) -> None:
        from tui_transformer.learning.log import Log, check_new, log_in
        from tui_transformer.learning.run import Run
        from tui_transformer.learning.settings import Settings, is_run

        if self.out is None:
            raise UsageError("--out FOLDER is missing: say where the run and its model are to be kept")
        if self.features is not None:
            self._learn_features(self.out, self.features)
            return
        if (name := next((name for name in OF_FEATURES if getattr(self, name) is not None), None)) is not None:
            raise UsageError(f"--{name} is of a dictionary: say with --features how many features it has")
        settings = self._given()
        resumes = self.resume and (is_run(self.out) or self.file is None)
        if self.log is not None and not resumes:
            check_new(self.log, self.out)
        if self.resume and not resumes:
            note(f"{visible(str(self.out))} holds no run yet: this one begins at step 0")
        if not resumes:
            settings = self._complete(self.out, settings)
        run = Run.resume(self.out, settings) if resumes else Run.start(self.out, Settings(**settings))
        with (
            contextlib.closing(run) as begun,
            contextlib.closing(Log(self.log or log_in(begun.folder), begun.trainer.step)) as log,
        ):
            self._see_through(begun, log)

    def _given(self) -> dict[str, Any]:
        given = {name: value for name, value in vars(self).items() if value is not None}
        own = ("out", "resume", "log", "recipe", *OF_FEATURES, *OF_A_NEW_MODEL)
        settings = {name: value for name, value in given.items() if name not in own}
        if sizes := {name: given[name] for name in OF_A_NEW_MODEL if name in given}:
            settings["sizes"] = sizes
        files = {"file": self.file, "vectors": self.vectors}
        return settings | {name: str(path.absolute()) for name, path in files.items() if path is not None}

    def _complete(self, out: Path, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of a new run, with those of a recipe, whose text is written into the run's folder."""
        has = next((option for option in ("vocab", "model") if settings.get(option)), "")
        if has and (name := next((name for name in OF_A_NEW_VOCABULARY if name in settings), None)) is not None:
            own = f"--{has} {visible(settings[has])} has its own"
            raise UsageError(f"--{name.replace('_', '-')} is of a vocabulary that is built, and {own}: leave it out")
        if self.recipe is None:
            if self.file is None:
                raise UsageError("FILE is missing: name the text that the model is to learn from")
            if self.task is None:
                raise UsageError("--task is missing: use next-word, next-character, masked-word, classify or pairs")
            return settings
        from tui_transformer.learning import recipes
        from tui_transformer.learning.run import check_new

        for name, given in (("FILE", self.file), ("--task", self.task)):
            if given is not None:
                raise UsageError(f"--recipe {self.recipe} has a text and a task of its own: leave out {name}")
        recipe = recipes.recipe(self.recipe)
        check_new(out.absolute(), str(out.absolute() / recipe.file))
        text = recipe.write_text(out.absolute())
        return {**recipe.settings, **settings, "file": str(text)}

    # A dictionary of features

    def _learn_features(self, out: Path, count: int) -> None:
        """Learn a dictionary of a step of a model, and tell how good it is."""
        from tui_transformer.files import make_folder
        from tui_transformer.learning.dictionary import learn
        from tui_transformer.learning.run import check_new
        from tui_transformer.model.model import Model

        name, plan = self._plan(count)
        check_new(out.absolute())
        model, line = Model.load(name, device=vars(self)["device"] or "auto"), Line()

        def report(step: int, left: float) -> None:
            said = f"step {step:,} of {plan.steps:,} · {left:.2%} of the variance left"
            line.tell(said, now=step == plan.steps)

        is_new = not out.exists()
        make_folder(out)  # what cannot be written is said before it is learned
        try:
            with stopping() as stop:
                learned = learn(model, self._texts(), plan, report, lambda: stop)
                learned.save(out)
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):
                    out.rmdir()
            raise
        show(None)
        rows = {
            "features": f"{count:,}, {plan.k} active at a token",
            "learned in": f"{learned.steps:,} steps of {learned.plan.batch:,} rows of {plan.at}",
            "variance left": f"{learned.left:.2%} of {learned.rows:,} other rows",
            "never active": f"{learned.dead:,} features in these",
            "dictionary": visible(str(out)),
        }
        emit(f"{name:<20} {value}\n" for name, value in rows.items())
        if stop:
            note(f"stopped after step {learned.steps:,}: what was learned until then is written")
            raise typer.Exit(128 + stop[0])

    def _plan(self, count: int) -> tuple[str, Plan]:
        """The model, and how so many features of one of its steps are learned."""
        from tui_transformer.learning.dictionary import Plan

        given = (name for name, value in vars(self).items() if value not in (None, False, ""))
        if (name := next((name for name in given if name not in WITH_FEATURES), None)) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is of a model that is trained: leave it out with --features")
        model_name = self.model or self.recipe
        if model_name is None or self.at is None:
            missing = "--at STEP" if model_name is not None else "--model FOLDER|NAME"
            raise UsageError(f"{missing} is missing: features are of a step of a model, as decoder.1.output")
        own = vars(self)
        names = {"k": "active", "steps": "steps", "batch": "batch", "rate": "learning_rate", "seed": "seed"}
        asked = {name: own[option] for name, option in names.items() if own[option] is not None}
        return model_name, Plan(self.at, count, **asked)

    def _texts(self) -> list[str]:
        from tui_transformer.learning import recipes
        from tui_transformer.learning.corpora import lines_of
        from tui_transformer.text.files import read_lines

        if self.recipe is not None and self.file is None:
            return list(lines_of(self.recipe, recipes.recipe(self.recipe).lines))
        if self.file is None or self.recipe is not None:
            raise UsageError("name the text that features are learned from: FILE, or --recipe NAME for its text")
        return [line for each in read_lines([self.file]) if (line := each.strip())]

    # A model

    def _see_through(self, begun: Run, log: Log) -> None:
        trainer = begun.trainer
        if trainer.done:
            raise InputError(f"all {trainer.step:,} steps are made: go on with more, as --steps {2 * trainer.step}")
        note(_about(trainer))
        embedding, words = trainer.model.embedding, trainer.model.vocabulary
        if embedding is not None and embedding.vectors is not None and words is not None:
            note(embedding.vectors.said(words))
        progress = Progress(trainer.settings.steps, trainer.step)
        with stopping() as stop, contextlib.closing(progress.line):
            while not trainer.done:
                begun.step(log, progress.show)
                if log.epoch is not None:
                    progress.end_epoch(log.epoch)
                if stop and not trainer.done:  # save, say how to go on, and end as a signal does
                    progress.line.close()
                    begun.save()
                    again = ["tui-transformer", "train", "--resume", "--out", str(begun.folder)]
                    again += ["--log", str(self.log)] if self.log else []
                    note(f"stopped after step {trainer.step:,}, which is saved; go on with: {shlex.join(again)}")
                    raise typer.Exit(128 + stop[0])
        if progress.last is not None:
            _tell(begun.folder, *progress.last)
        if stop:  # while the last step was made: nothing is left to go on with
            raise typer.Exit(128 + stop[0])


def _about(trainer: Trainer) -> str:
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


# Progress


@dataclass
class Progress:
    """Progress on standard error: where it is now and then, and what is measured and every epoch on lines that stay."""

    steps: int
    first: int
    started: float = field(default_factory=time.monotonic)
    told_epoch: float = 0.0
    last: tuple[Record, Measured | None] | None = None
    line: Line = field(default_factory=Line)

    def show(self, record: Record, measured: Measured | None) -> None:
        """Tell how far it is."""
        self.last = record, measured
        self.line.tell(self._line(record, measured), now=measured is not None)
        if measured is not None:
            self.line.close()

    def end_epoch(self, epoch: Epoch) -> None:
        """Tell the means of an epoch: of every one where they are few, of many short ones now and then."""
        from tui_transformer.engine.number_format import in_percent

        now, step = time.monotonic(), self.steps if self.last is None else self.last[0].step
        few = epoch.number * self.steps <= FEW_EPOCHS * step
        if few or now - self.told_epoch > OFTEN or step == self.steps:
            self.told_epoch = now
            right = in_percent(epoch.accuracy, ".2%")
            self.line.tell(f"epoch {epoch.number:,}: loss {epoch.loss:.4f}, right answers {right}", now=True)
            self.line.close()

    def _line(self, record: Record, measured: Measured | None) -> str:
        """The most important first: a narrow terminal cuts the rest."""
        from tui_transformer.report.numbers import clock

        passed = time.monotonic() - self.started
        left = f"{clock(passed / (record.step - self.first) * (self.steps - record.step))} left"
        speed = f"{record.tokens_per_second:,.0f} tokens/s"
        step, loss = f"step {record.step:,} of {self.steps:,}", f"loss {record.loss:.4f}"
        rest = (f"epoch {record.epoch:.2f}", f"rate {record.learning_rate:.2e}")
        if measured is not None:
            shares = f"accuracy {measured.accuracy:.3f}, perplexity {measured.perplexity:.4g}"
            return " · ".join((step, loss, f"validation loss {measured.loss:.4f}, {shares}", left, speed, *rest))
        return " · ".join((step, left, speed, loss, f"accuracy {record.accuracy:.3f}", *rest))
