"""Heads and outputs of a model while it learns, made in a small share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tui_transformer.explorer.tools.runs.sample import Examples, Heads, Output, heads_of
from tui_transformer.learning.loop import Trainer

SHARE = 0.01
"""Of the time of training, what snapshots may take."""

KEPT = 60
"""Outputs that are kept."""


@dataclass(eq=False)
class Snapshots:
    """The attention of the heads and outputs for examples, each made in turn when there is time for it.

    Attributes:
        heads: The newest; None before the first.
        outputs: The newest first.
    """

    trainer: Trainer
    heads: Heads | None = None
    outputs: tuple[Output, ...] = ()
    _spent: float = 0.0
    _earned: float = 0.0
    _turn: Iterator[Callable[[], None]] = field(init=False)
    _made: Iterator[Output] = field(init=False)

    def __post_init__(self) -> None:
        self.examples = Examples(self.trainer.data)
        self._made = self.examples.outputs(self.trainer.model, lambda: self.trainer.step)
        self._turn = self._in_turns()

    def after(self, seconds: float) -> None:
        """Make one, if the time that was spent on training allows it."""
        self._earned += SHARE * seconds
        if self._spent <= self._earned:
            started = time.perf_counter()
            next(self._turn)()
            self._spent += time.perf_counter() - started

    def now(self) -> None:
        """Make both of the model as it is, if it has changed since."""
        if self.heads is None or self.heads.step != self.trainer.step:
            self._take_heads()
        if not self.outputs or self.outputs[0].step != self.trainer.step:
            self._take_output()

    def _in_turns(self) -> Iterator[Callable[[], None]]:
        while True:
            yield self._take_heads
            yield self._take_output

    def _take_heads(self) -> None:
        self.heads = heads_of(self.trainer.model, self.examples.sample, self.trainer.step)

    def _take_output(self) -> None:
        self.outputs = (next(self._made), *self.outputs)[:KEPT]
