"""Tensors of a checkpoint that nothing reads: named, since a model may have been made with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

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
