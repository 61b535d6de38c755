"""The inputs of a program: token IDs, checked, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.model.base_config import BaseConfig, counted, unpadded

DECODER = "decoder."
"""In front of the inputs of a decoder beside an encoder."""

Givens = dict[str, Host]


def checked_ids(ids: Sequence[Any] | Host | None, config: BaseConfig, words: int) -> Host:
    """Token IDs as batch × tokens, every one inside a vocabulary of so many words.

    Raises:
        InputError: They are no rows of token IDs, or more than the model reads.
    """
    try:
        rows = np.atleast_2d(np.asarray(ids))
    except ValueError as error:
        raise InputError("token IDs are whole numbers, in rows of the same length") from error
    if rows.size == 0:
        raise InputError("there are no token IDs: give at least one")
    if rows.ndim != 2 or rows.dtype.kind not in "iu":
        raise InputError("token IDs are whole numbers, in rows of the same length")
    outside = rows[(rows < 0) | (rows >= words)]
    if outside.size:
        raise InputError(f"token ID {outside[0]} is outside the vocabulary: IDs go from 0 to {words - 1}")
    if rows.shape[1] > config.longest:
        raise InputError(f"{rows.shape[1]} tokens are more than the {config.longest} that the model reads")
    return rows.astype(np.int64)


def givens_of(rows: Host, config: BaseConfig, prefix: str = "", visible: Host | None = None) -> Givens:
    """IDs, their places, and which are visible: by default all but runs of the pad ID at the beginning and end."""
    if visible is None:
        visible = unpadded_ids(rows, config, begins=bool(prefix))  # a decoder may begin with the pad ID
    values = {
        "ids": rows,
        "places": _places(rows, visible, config),
        "visible": visible,
        "order": counted(rows),
        "unpadded": unpadded(rows, config.pad_id),
        "segments": np.zeros_like(rows),
        "ended": visible & _until_end(rows, config),
    }
    return {f"{prefix}input.{name}": value for name, value in values.items()}


def _places(rows: Host, visible: Host, config: BaseConfig) -> Host:
    """The places of tokens; in a decoder the first that is no padding has the first place, the next the second."""
    places = config.places(rows)
    if visible.all() or not getattr(config, "places_by_mask", False):
        return places
    ahead = visible.argmax(axis=1)[:, None]  # padding at the beginning
    hidden = np.maximum(np.arange(rows.shape[1]) - ahead, 0)
    return np.take_along_axis(places, np.where(visible, visible.cumsum(axis=1) - 1, hidden), axis=1)


def _until_end(rows: Host, config: BaseConfig) -> Host:
    """True up to the last token that ends a text, where a classifier goes by it; of a row without one, everywhere."""
    ends = rows == (None if config.labels is None else config.labels.end_id)
    visible: Host = np.logical_or.accumulate(ends[:, ::-1], axis=1)[:, ::-1] | ~ends.any(axis=1, keepdims=True)
    return visible


def unpadded_ids(rows: Host, config: BaseConfig, *, begins: bool) -> Host:
    """True from the first to the last ID that is not padding; `begins`: the first ID is none, whatever it is."""
    pad_id = config.pad_id if getattr(config, "padding_mask", True) else None
    if pad_id is None:
        return all_visible(rows)
    real = rows != pad_id
    real[:, 0] |= begins
    visible = all_visible(rows)
    if getattr(config, "end_is_padding", True):
        visible &= np.logical_or.accumulate(real[:, ::-1], axis=1)[:, ::-1]
    nothing_else = ~real.any(axis=1, keepdims=True)
    visible &= np.logical_or.accumulate(real, axis=1) | nothing_else
    return visible


def checked_mask(mask: Sequence[Any] | Host | None, rows: Host) -> Host | None:
    """Which tokens are real (1) and which are padding (0), batch × tokens; None where nothing is said.

    Raises:
        InputError: It does not fit the tokens, or a row of it hides everything.
    """
    if mask is None:
        return None
    wanted = "a mask has a 1 for every token and a 0 for padding"
    try:
        marks = np.atleast_2d(np.asarray(mask))
    except ValueError as error:
        raise InputError(f"{wanted}, in rows of the same length") from error
    if marks.dtype.kind not in "iub" or not np.isin(marks, (0, 1)).all():
        raise InputError(f"{wanted}: no other number")
    if marks.ndim != 2 or marks.shape[1] != rows.shape[1] or len(marks) not in (1, len(rows)):
        had = " × ".join(map(str, marks.shape))
        raise InputError(f"{wanted}: this is {had}, for {len(rows)} × {rows.shape[1]} tokens")
    if not marks.any(axis=1).all():
        raise InputError(f"{wanted}: a row of it has no 1")
    return np.broadcast_to(marks.astype(np.bool_), rows.shape)


def padded(rows: Sequence[Sequence[int]], pad_id: int | None) -> tuple[list[list[int]], list[list[int]]]:
    """Rows made equally long with the pad ID (0 where there is none) at the end, and the mask that tells it."""
    width = max(map(len, rows), default=0)
    ids = [[*row, *[pad_id or 0] * (width - len(row))] for row in rows]
    return ids, [[int(i < len(row)) for i in range(width)] for row in rows]


def all_visible(rows: Host) -> Host:
    """No token is padding."""
    return np.ones(rows.shape, dtype=np.bool_)


def segments_of(segments: Sequence[int] | None, rows: Host, config: BaseConfig) -> Givens:
    """The segment of every token, where one is given and the model has them.

    Raises:
        InputError: They do not fit the tokens or the model.
    """
    known: int = getattr(config, "segments", 0)
    if segments is None or not known:
        return {}
    row = np.array(segments, dtype=np.int64)
    if row.shape != rows.shape[1:] or row.min() < 0 or row.max() >= known:
        raise InputError(f"segments are one number from 0 to {known - 1} for each of {rows.shape[1]} tokens")
    return {"input.segments": np.broadcast_to(row, rows.shape)}


def without_past(givens: Mapping[str, Host], prefix: str, past: int) -> Givens:
    """The inputs of the tokens after the first `past`, and the places of all."""
    later = {name: values[:, past:] for name, values in givens.items() if name.startswith(f"{prefix}input.")}
    places, visible = f"{prefix}input.places", f"{prefix}input.visible"
    return later | {visible: givens[visible], f"{prefix}input.key_places": givens[places]}
