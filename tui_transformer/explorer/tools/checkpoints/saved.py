"""The checkpoints of a run: step, loss, and the model of each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.runs.log import logged
from tui_transformer.explorer.tools.runs.sample import LONGEST, Examples, Sample, written
from tui_transformer.learning.data import lines_of, read_data
from tui_transformer.learning.run import checkpoints
from tui_transformer.learning.settings import settings_of
from tui_transformer.model import Model
from tui_transformer.text.files import shown_path
from tui_transformer.text.known_words import sample_sentence

MOST_SIDE_BY_SIDE = 8


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
        losses = {int(row["step"]): row for row in logged(folder)}
        return cls(folder, tuple(_checkpoint(path, losses.get(int(path.name), {})) for path in paths))

    def side_by_side(self, most: int) -> tuple[int, ...]:
        """The places of a few, evenly spaced, the first and the last among them."""
        last, count = len(self.all) - 1, max(min(MOST_SIDE_BY_SIDE, most, len(self.all)), 1)
        return tuple(round(place * last / max(count - 1, 1)) for place in range(count))

    def load(self, place: int, device: str, dtype: str) -> Model:
        """The model of a checkpoint.

        Raises:
            InputError: It cannot be read.
        """
        at = self.all[place]
        return replace(
            Model.load(at.folder, device=device, dtype=dtype), name=f"{self.folder.name} at step {at.step:,}"
        )

    def sample(self, model: Model) -> Sample:
        """An example of the run's validation part; where its text is not there any more, a sentence of its words."""
        with suppress(InputError, OSError):
            settings = settings_of(self.folder)
            if model.tokenizer is not None:
                return Examples(read_data(settings, lines_of(settings), model.tokenizer)).sample
        return sample_of(model, sample_sentence(model.vocabulary) if model.vocabulary is not None else "")


def _checkpoint(path: Path, row: Mapping[str, float]) -> Checkpoint:
    return Checkpoint(path, int(path.name), row.get("loss"), row.get("validation_loss"))


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
