"""The checkpoints of a run as frames: step, loss, and the attention of the heads on one sample."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.runs.log import logged
from tui_transformer.explorer.tools.runs.sample import LONGEST, Examples, Heads, Sample, heads_of, written
from tui_transformer.learning.checkpoint import checkpoints
from tui_transformer.learning.data import lines_of, read_data
from tui_transformer.learning.run_file import settings_of
from tui_transformer.model import Model
from tui_transformer.text.files import shown_path
from tui_transformer.text.samples import sample_sentence

SIDE_BY_SIDE = 8
"""Pictures of the strip, at most."""


@dataclass(frozen=True)
class Frame:
    """A checkpoint: its folder, its step, and the losses of that step where the log has them."""

    folder: Path
    step: int
    loss: float | None = None
    validation: float | None = None


@dataclass(frozen=True, eq=False)
class Film:
    """The checkpoints of a run from first to last."""

    folder: Path
    frames: tuple[Frame, ...]

    @classmethod
    def of(cls, folder: Path) -> Film:
        """The checkpoints of a folder.

        Raises:
            InputError: There are none.
        """
        found = checkpoints(folder)
        if not found:
            raise InputError(f"{shown_path(folder)} holds no checkpoints: name the folder of a training run")
        losses = {int(row["step"]): row for row in logged(folder)}
        return cls(folder, tuple(_frame(path, losses.get(int(path.name), {})) for path in found))

    def strip(self, most: int) -> tuple[int, ...]:
        """The frames that are shown side by side: evenly spaced, the first and the last among them."""
        last, count = len(self.frames) - 1, max(min(SIDE_BY_SIDE, most, len(self.frames)), 1)
        return tuple(round(place * last / max(count - 1, 1)) for place in range(count))

    def load(self, place: int, device: str, dtype: str) -> Model:
        """The model of a frame.

        Raises:
            InputError: It cannot be read.
        """
        frame = self.frames[place]
        model = Model.load(frame.folder, device=device, dtype=dtype)
        return replace(model, name=f"{self.folder.name} at step {frame.step:,}")

    def sample(self, model: Model) -> Sample:
        """An example of the run's validation part; where its text is not there any more, a sentence of its words."""
        with suppress(InputError, OSError):
            settings = settings_of(self.folder)
            if model.tokenizer is not None:
                return Examples(read_data(settings, lines_of(settings), model.tokenizer)).sample
        return sample_of(model, sample_sentence(model.vocabulary) if model.vocabulary is not None else "")


def _frame(path: Path, row: Mapping[str, float]) -> Frame:
    return Frame(path, int(path.name), row.get("loss"), row.get("validation_loss"))


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
class Shots:
    """The heads of each frame on one sample, as far as they were computed. The worker alone computes them.

    Attributes:
        film: The checkpoints.
        device: Where they are computed, and in which precision.
        sample: None until the first checkpoint was read.
        taken: By the place of the frame.
    """

    film: Film
    device: str
    dtype: str
    sample: Sample | None = None

    def __post_init__(self) -> None:
        self.taken: dict[int, Heads] = {}

    def take(self, place: int, report: Callable[[str], None]) -> tuple[int, Sample, Heads]:
        """The heads of a frame, computed; `report` may raise to end it.

        Raises:
            InputError: The checkpoint cannot be read.
        """
        frame = self.film.frames[place]
        report(f"checkpoint {frame.step:,}")
        model = self.film.load(place, self.device, self.dtype)
        sample = self.sample or self.film.sample(model)
        return place, sample, heads_of(model, sample, frame.step)

    def next_missing(self, place: int, strip: Iterable[int], unread: Collection[int]) -> int | None:
        """The frame to take next: the one that is looked at, its neighbours, the strip, then all others."""
        wanted = (place, place + 1, place - 1, *strip, *range(len(self.film.frames)))
        return next(
            (at for at in wanted if 0 <= at < len(self.film.frames) and at not in self.taken and at not in unread), None
        )


def usual_device(model: Model) -> tuple[str, str]:
    """Where checkpoints are computed: as the model that is explored."""
    return model.backend.device, str(model.backend.dtype)
