"""A configuration made to fit its file: heads that are there or not, tensors that are there twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.families import Family, ModelConfig
from tui_transformer.model.families.labels import fitted_labels, has_labels, table_of
from tui_transformer.model.tensors import Tensor, Tensors

BLOCK = 1 << 24
"""Bytes that are compared together."""


def fit(family: Family, config: ModelConfig, tensors: Tensors) -> tuple[ModelConfig, Tensors]:
    """The configuration with what only the file tells, and the tensors without those that are copies of others.

    Only where a file has a tensor and its copy, both are read, to see whether they are equal.

    Raises:
        InputError: Tensors that the family has only once differ.
    """
    if family.wrapped and getattr(config, "labels", None) is not None:
        tensors = _unwrapped(tensors, family.wrapped)
    tensors = _without_copies(tensors, family.copies(config, tensors.names))
    names = frozenset((*tensors.names, *tensors.promised))
    try:
        config = family.fitted(config, names)
        labels = getattr(config, "labels", None)
        if labels is None:
            return config, tensors
        table = table_of(family.weights, config)
        fitted = fitted_labels(labels, table, names) if has_labels(labels, table, names) else None
        return replace(cast("Any", config), labels=fitted), tensors
    except UsageError as error:
        raise InputError(f"{tensors.path}: {error}") from error


def _unwrapped(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors without what a classifier puts before the names of its layers."""
    unwrapped = {name.removeprefix(prefix): tensor for name, tensor in tensors.by_name.items()}
    return replace(tensors, by_name=unwrapped) if len(unwrapped) == len(tensors.by_name) else tensors


def _without_copies(tensors: Tensors, copies: Mapping[str, str]) -> Tensors:
    """The tensors but for those that equal what they are said to be copies of."""
    held = tensors.by_name
    gone = {
        copy
        for copy, name in copies.items()
        if copy != name and copy in held and name in held and equal(held[copy], held[name])
    }
    kept = {name: tensor for name, tensor in held.items() if name not in gone}
    promised = {name: file for name, file in tensors.promised.items() if name not in gone}
    return replace(tensors, by_name=kept, promised=promised)


def equal(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors hold the same bytes, as numbers of the same type and in the same shape."""
    if (first.kind, first.shape) != (second.kind, second.shape):
        return False
    sizes = range(0, first.stop - first.start, BLOCK)
    return all(_block(first, start) == _block(second, start) for start in sizes)


def _block(tensor: Tensor, start: int) -> bytes:
    start += tensor.start
    return tensor.file.bytes(start, min(BLOCK, tensor.stop - start))
