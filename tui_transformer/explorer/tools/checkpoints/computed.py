"""The heads at each checkpoint on one sample, as far as they were computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tui_transformer.analysis.attentions import Attention
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.checkpoints.saved import Checkpoints
from tui_transformer.explorer.tools.runs.sample import Heads, Sample, heads_of
from tui_transformer.model import Model


@dataclass(eq=False)
class Computed:
    """The worker computes them, the screen's thread keeps them.

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
        """The model of a checkpoint.

        Raises:
            InputError: It cannot be read.
        """
        task.report(f"checkpoint {self.run.all[place].step:,}")
        return self.run.load(place, self.device, self.dtype)

    def compute(self, place: int, task: Task) -> tuple[int, Heads]:
        """The heads at a checkpoint.

        Raises:
            InputError: It cannot be read.
        """
        model = self.load(place, task)
        return place, heads_of(model, self.sample or self.run.sample(model), self.run.all[place].step)

    def keep(self, place: int, heads: Heads) -> None:
        """Keep what was computed; the others are of the same sample."""
        self.sample = heads.sample
        self.heads[place] = heads

    def missing(self, place: int, side_by_side: Iterable[int]) -> int | None:
        """The place to compute next: the one that is shown, its neighbours, those that are side by side, all others."""
        wanted = (place, place + 1, place - 1, *side_by_side, *range(len(self.run.all)))
        return next((at for at in wanted if at in range(len(self.run.all)) and at not in self._done), None)

    @property
    def _done(self) -> set[int]:
        return self.unread.union(self.heads)
