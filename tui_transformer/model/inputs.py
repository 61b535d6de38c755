"""The inputs of a program: token IDs, checked, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.model.families import Family, ModelConfig
from tui_transformer.model.families.base import counted, unpadded

DECODER = "decoder."
"""In front of the inputs of a decoder beside an encoder."""

Givens = dict[str, Host]


def checked_ids(ids: Sequence[Any] | Host | None, config: ModelConfig) -> Host:
    """Token IDs as batch × tokens, every one inside the vocabulary.

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
    outside = rows[(rows < 0) | (rows >= config.vocab_size)]
    if outside.size:
        raise InputError(f"token ID {outside[0]} is outside the vocabulary: IDs go from 0 to {config.vocab_size - 1}")
    if rows.shape[1] > config.longest:
        raise InputError(f"{rows.shape[1]} tokens are more than the {config.longest} that the model reads")
    return rows.astype(np.int64)


def givens_of(rows: Host, family: Family, config: ModelConfig, prefix: str = "", visible: Host | None = None) -> Givens:
    """IDs, their places, and which are visible: by default all but a run of the pad ID at the end."""
    if visible is None:
        visible = _unpadded(rows, config)
        visible[:, 0] |= bool(prefix)  # a decoder may begin with the pad ID
    values = {
        "ids": rows,
        "places": family.places(rows, config.pad_id),
        "visible": visible,
        "order": counted(rows, None),
        "unpadded": unpadded(rows, config.pad_id),
        "segments": np.zeros_like(rows),
    }
    return {f"{prefix}input.{name}": value for name, value in values.items()}


def _unpadded(rows: Host, config: ModelConfig) -> Host:
    """True up to the last ID that is not padding."""
    pad_id = config.pad_id if getattr(config, "padding_mask", True) else None
    if pad_id is None:
        return all_visible(rows)
    return np.logical_or.accumulate((rows != pad_id)[:, ::-1], axis=1)[:, ::-1]


def all_visible(rows: Host) -> Host:
    """No token is padding."""
    return np.ones(rows.shape, dtype=np.bool_)


def segments_of(segments: Sequence[int] | None, rows: Host, config: ModelConfig) -> Givens:
    """The segment of every token, where one is given and the model has them.

    Raises:
        InputError: They do not fit the tokens or the model.
    """
    known: int = getattr(config, "segments", 0)
    if segments is None or not known:
        return {}
    found = np.array(segments, dtype=np.int64)
    if found.shape != rows.shape[1:] or found.min() < 0 or found.max() >= known:
        raise InputError(f"segments are one number from 0 to {known - 1} for each of {rows.shape[1]} tokens")
    return {"input.segments": np.broadcast_to(found, rows.shape)}


def without_past(givens: Mapping[str, Host], prefix: str, past: int) -> Givens:
    """The inputs of the tokens after the first `past`, and the places of all."""
    later = {name: values[:, past:] for name, values in givens.items() if name.startswith(f"{prefix}input.")}
    places, visible = f"{prefix}input.places", f"{prefix}input.visible"
    return later | {visible: givens[visible], f"{prefix}input.key_places": givens[places]}
