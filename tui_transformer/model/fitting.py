"""A configuration made to fit its file: heads that are there or not, tensors that are copies or that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.model.labels import fitted_labels, has_labels, table_of
from tui_transformer.model.tensors import Tensor, Tensors

BLOCK = 1 << 24
"""Bytes that are compared together."""


def fit(config: BaseConfig, tensors: Tensors) -> tuple[BaseConfig, Tensors]:
    """The configuration with what only the file tells, and the tensors without those that are copies of others.

    Only where a file has a tensor and its copy, both are read, to see whether they are equal.

    Raises:
        InputError: Tensors that the family has only once differ.
    """
    if config.wrapped and config.labels is not None:
        tensors = _unwrapped(tensors, config.wrapped)
    tensors = _without_copies(tensors, config.copies(tensors.names))
    names = frozenset((*tensors.names, *tensors.promised))
    try:
        config = config.fitted(names)
        if config.labels is None:
            return config, tensors
        table = table_of(config.weights, config)
        fitted = fitted_labels(config.labels, table, names) if has_labels(config.labels, table, names) else None
        return replace(config, labels=fitted), tensors
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
    if (first.kind, first.shape, first.turned) != (second.kind, second.shape, second.turned):
        return False
    sizes = range(0, first.stop - first.start, BLOCK)
    return all(_block(first, start) == _block(second, start) for start in sizes)


def _block(tensor: Tensor, start: int) -> bytes:
    start += tensor.start
    return tensor.file.bytes(start, min(BLOCK, tensor.stop - start))


HARMLESS: tuple[str, ...] = (
    r"position_ids",  # 0, 1, 2 …, as BERT's embeddings hold them
    r"token_type_ids",
    r"(attn|attention)\.(attention\.)?(bias|masked_bias)",  # the causal mask of GPT-2, GPT-Neo and GPT-NeoX
    r"rotary_emb\.(inv_freq|cos_cached|sin_cached)",
    r"rotary_pos_emb\.inv_freq",
    r"embed_positions\.(weights|_float_tensor)",  # sines that are computed
    r"(encoder|decoder)\.version",
    r"EncDecAttention\.relative_attention_bias\.weight",  # of old T5 files; the published code drops it too
)
"""Ends of the names of buffers, which hold no learned number and are computed here, and of weights that do nothing."""

POOLER: tuple[str, ...] = (r"pooler\.(dense\.)?(weight|bias)",)
"""Of an encoder's own way to one vector, which a folder of sentence-transformers leaves for another."""

NAMED, LONGEST = 3, 60


def unread(names: Collection[str], read: Iterable[str], harmless: Sequence[str] = ()) -> tuple[str, ...]:
    """The tensors of a file that no weight is read from, but for those that are known to do nothing; sorted.

    `harmless`: more ends of names of such tensors, as in `HARMLESS`.
    """
    known = re.compile(rf"(^|.*\.)({'|'.join((*HARMLESS, *harmless))})")
    return tuple(sorted(name for name in set(names) - set(read) if not known.fullmatch(name)))


def unread_said(name: str, tensors: tuple[str, ...]) -> str | None:
    """That there are such tensors, in one line; None where there are none."""
    if not tensors:
        return None
    count = f"{len(tensors):,} tensors" if len(tensors) > 1 else "a tensor"
    shown = ", ".join(each[:LONGEST] for each in tensors[:NAMED])
    more = f" and {len(tensors) - NAMED:,} more" if len(tensors) > NAMED else ""
    return f"{name}: nothing here reads {count} of the file: {shown}{more}"
