"""The work of one process of a survey: a model that is loaded once, and batches that are measured with it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tui_transformer.analysis.survey.batch import Asked, Item, survey
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions

Batch = tuple[Item, ...]

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""A worker computes on one core: products of several threads may be rounded otherwise, and workers share the cores."""


@dataclass(frozen=True)
class Work:
    """The task that every worker does.

    Attributes:
        options: The model.
        asked: What is measured.
    """

    options: ModelOptions
    asked: Asked

    @cached_property
    def model(self) -> Model:
        """The model, loaded when it is first asked for.

        Raises:
            InputError: It cannot be loaded.
        """
        return self.options.load()

    def sums(self, batch: Sequence[Item]) -> bytes:
        """The sums of a batch, as bytes.

        Raises:
            InputError: The model lacks what is measured, or memory is short.
        """
        try:
            return survey(self.model, batch, self.asked).to_bytes()
        except MemoryError as error:
            raise InputError("not enough memory: use fewer workers, or a shorter --length") from error


def new(work: Work) -> Work:
    """The same without a model, to be handed to another process."""
    return Work(work.options, work.asked)


def batch_bytes(batch: Batch) -> bytes:
    """A batch as JSON."""
    return json.dumps([[item.number, *dataclasses.astuple(item.source)] for item in batch]).encode()


def batch_of(data: bytes) -> Batch:
    """The batch of some JSON, which another process of the program wrote."""
    return tuple(Item(number, Source(*source)) for number, *source in json.loads(data))
