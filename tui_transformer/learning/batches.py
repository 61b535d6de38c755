"""Batches: which examples, in which order, padded to the longest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED, counted


@dataclass(frozen=True, eq=False)
class Row:
    """One example.

    Attributes:
        ids: What the model reads.
        targets: The right ID at every position that is predicted (of the decoder, where there are two sequences).
        decoder_ids: What the decoder beside an encoder reads.
    """

    ids: Host
    targets: Host
    decoder_ids: Host | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples as arrays of batch × longest, padded with the pad ID and, in the targets, with −1."""

    ids: Host
    targets: Host
    decoder_ids: Host | None
    tokens: int

    @property
    def counted(self) -> int:
        """Positions that are in the loss."""
        return counted(self.targets)


def together(rows: Sequence[Row], pad_id: int | None) -> Batch:
    """Rows side by side."""
    pad = pad_id or 0
    decoder = [row.decoder_ids for row in rows if row.decoder_ids is not None]
    tokens = sum(row.ids.size for row in rows) + sum(ids.size for ids in decoder)
    targets = _padded([row.targets for row in rows], NOT_COUNTED)
    return Batch(_padded([row.ids for row in rows], pad), targets, _padded(decoder, pad) if decoder else None, tokens)


def _padded(rows: Sequence[Host], value: int) -> Host:
    result = np.full((len(rows), max(row.size for row in rows)), value, dtype=np.int64)
    for i, row in enumerate(rows):
        result[i, : row.size] = row
    return result


@dataclass(frozen=True)
class Order:
    """The order of examples: a permutation of its own for every epoch, from the seed; nothing has to be remembered.

    Attributes:
        count: Examples.
        batch: Examples a batch; the last one of an epoch may have fewer.
        seed: Of the permutations.
    """

    count: int
    batch: int
    seed: int

    @property
    def per_epoch(self) -> int:
        """Batches an epoch."""
        return -(-self.count // self.batch)

    def examples(self, number: int) -> Host:
        """The examples of a batch, which are counted through all epochs from 0."""
        epoch, place = divmod(number, self.per_epoch)
        order = np.random.default_rng((self.seed, epoch)).permutation(self.count)
        return order[place * self.batch : (place + 1) * self.batch]


def split(count: int, share: float, seed: int, *, whole: bool) -> tuple[Host, Host]:
    """Examples for training and for validation: the last ones of a text that is whole, else picked at random.

    Where a share is wanted there is at least one of each.
    """
    held_out = min(max(round(count * share), 1), count - 1) if share else 0
    order = np.arange(count) if whole else np.random.default_rng((seed, count)).permutation(count)
    return np.sort(order[: count - held_out]), np.sort(order[count - held_out :])


def chosen(rows: Sequence[Row], places: Iterable[int]) -> list[Row]:
    """The rows at these places."""
    return [rows[int(place)] for place in places]
