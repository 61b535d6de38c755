"""The checkpoints of a run: step, loss, the model of each, and the heads that were computed on one sample."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui_transformer.analysis.attentions import Attention
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.runs import LONGEST, Examples, Heads, Sample, heads_of, logged, written
from tui_transformer.learning.data import lines_of, read_data
from tui_transformer.learning.run import checkpoints
from tui_transformer.learning.settings import settings_of
from tui_transformer.model import Model
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import sample_sentence


@dataclass(frozen=True)
class Checkpoint:
    """Its folder, its step, and the losses of that step where the log has them."""

    folder: Path
    step: int
    loss: float | None = None
    validation: float | None = None


@dataclass(frozen=True, eq=False)
class Checkpoints:
    """The checkpoints of a run from first to last."""

    folder: Path
    all: tuple[Checkpoint, ...]

    @classmethod
    def of(cls, folder: Path) -> Checkpoints:
        """The checkpoints of a folder.

        Raises:
            InputError: There are none.
        """
        paths = checkpoints(folder)
        if not paths:
            raise InputError(f"{shown_path(folder)} holds no checkpoints: name the folder of a training run")
        rows = {int(row["step"]): row for row in logged(folder)}
        steps = ((path, int(path.name), rows.get(int(path.name), {})) for path in paths)
        return cls(
            folder, tuple(Checkpoint(path, at, row.get("loss"), row.get("validation_loss")) for path, at, row in steps)
        )

    def load(self, place: int, device: str, dtype: str) -> Model:
        """The model of a checkpoint.

        Raises:
            InputError: It cannot be read.
        """
        at = self.all[place]
        model = Model.load(at.folder, device=device, dtype=dtype)
        return replace(model, name=f"{self.folder.name} at step {at.step:,}")

    def sample(self, model: Model) -> Sample:
        """An example of the run's validation part; where its text is not there any more, a sentence of its words."""
        with suppress(InputError, OSError):
            settings = settings_of(self.folder)
            if model.tokenizer is not None:
                return Examples(read_data(settings, lines_of(settings), model.tokenizer)).sample
        return sample_of(model, sample_sentence(model.vocabulary) if model.vocabulary is not None else "")


def sample_of(model: Model, text: str) -> Sample:
    """A sentence as a sample; a decoder beside an encoder writes what is most likely.

    Raises:
        InputError: The sentence cannot be read.
    """
    ids = model.encode(text).ids
    if not model.has_decoder:
        return Sample(ids)
    start = model.encode_target().ids
    return Sample(ids, (*start, *written(model, start, ids, LONGEST)))


@dataclass(eq=False)
class Computed:
    """The heads at each checkpoint on one sample; the worker computes them, the screen's thread keeps them.

    Attributes:
        run: The checkpoints.
        device: Where they are computed, and in which precision.
        sample: None until the first checkpoint was read.
        heads: By the place of the checkpoint.
        unread: Places of checkpoints that cannot be read.
    """

    run: Checkpoints
    device: str
    dtype: str
    sample: Sample | None = None
    heads: dict[int, Heads] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)

    @property
    def attentions(self) -> tuple[Attention, ...]:
        """Those of the model; none before anything is known."""
        known = next(iter(self.heads.values()), None)
        return () if known is None else known.attentions

    def load(self, place: int, task: Task) -> Model:
        task.report(f"checkpoint {self.run.all[place].step:,}")
        return self.run.load(place, self.device, self.dtype)

    def compute(self, place: int, task: Task) -> tuple[int, Heads]:
        model = self.load(place, task)
        return place, heads_of(model, self.sample or self.run.sample(model), self.run.all[place].step)

    def keep(self, place: int, heads: Heads) -> None:
        """Keep what was computed; the others are of the same sample."""
        self.sample = heads.sample
        self.heads[place] = heads

    def missing(self, place: int, side_by_side: Iterable[int]) -> int | None:
        """The place to compute next: the one that is shown, its neighbours, those that are side by side, all others."""
        everything = range(len(self.run.all))
        wanted = (place, place + 1, place - 1, *side_by_side, *everything)
        done = self.unread.union(self.heads)
        return next((at for at in wanted if at in everything and at not in done), None)
