"""Rules of generation: tokens that a model's folder forces, forbids or makes less likely.

They act on the logits before temperature, in the order of the table at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Rules under the names that `generation_config.json` has for them.

    Attributes:
        stop_ids: Each ends the text (`eos_token_id`).
        decoder_start_token_id: What the decoder of an encoder–decoder begins with, where it is not the configuration's.
        forced_bos_token_id: The first token after a start token.
        forced_eos_token_id: The last token where the length limit is reached.
        bad_words_ids: Sequences that are not written.
        suppress_tokens: Tokens that are never written.
        begin_suppress_tokens: Tokens that are not written first.
        min_length: No stop token in a sequence shorter than this, the prompt included.
        min_new_tokens: No stop token before so many new ones.
        no_repeat_ngram_size: No run of so many tokens comes twice; 0 lets all.
        repetition_penalty: Logits of tokens that are there already are made smaller by this factor; 1 leaves them.
    """

    stop_ids: Ids = ()
    decoder_start_token_id: int | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: Ids = ()
    bad_words_ids: tuple[Ids, ...] = ()
    suppress_tokens: Ids = ()
    begin_suppress_tokens: Ids = ()
    min_length: int = 0
    min_new_tokens: int = 0
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0


@dataclass(frozen=True)
class Moment:
    """State in which the next token is chosen.

    Attributes:
        ids: The sequence so far.
        prompt: How many of them were given.
        limit: How many tokens the sequence may have.
    """

    ids: Ids
    prompt: int
    limit: int


Rule = Callable[[Rules, Moment, Host], Host | None]
"""Gives other logits, or None where the rule has nothing to say."""


def apply(rules: Rules, moment: Moment, logits: Host) -> tuple[Host, tuple[str, ...]]:
    """The logits under all rules, and the names of those that changed them.

    Raises:
        InputError: The rules leave no token.
    """
    acted = []
    for name, rule in RULES.items():
        changed = rule(rules, moment, logits)
        if changed is not None:
            logits = changed
            acted.append(name)
    if acted and not np.isfinite(logits.max()):
        raise InputError(f"no token is left to be written: {', '.join(acted)} of the model's folder forbid all")
    return logits, tuple(acted)


def repetition_penalty(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """Positive logits ÷ θ, negative ones · θ, for tokens that are there (Keskar et al. 2019, §4.1)."""
    factor = rules.repetition_penalty
    if factor == 1.0:
        return None
    there = np.unique(np.asarray(moment.ids))
    changed = logits.copy()
    changed[there] = np.where(logits[there] < 0, logits[there] * factor, logits[there] / factor)
    return changed


def no_repeat_ngram_size(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """A token that followed the last n − 1 tokens earlier does not follow them again (Paulus et al. 2017, §2.5)."""
    size, ids = rules.no_repeat_ngram_size, moment.ids
    if not 0 < size <= len(ids):
        return None
    last = ids[len(ids) - size + 1 :]
    starts = range(len(ids) - size + 1)
    return forbidden(logits, {ids[i + size - 1] for i in starts if ids[i : i + size - 1] == last})


def bad_words_ids(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """The last token of a bad word whose other tokens are the last ones written; a stop token alone is none."""
    words = (word for word in rules.bad_words_ids if len(word) > 1 or word[0] not in rules.stop_ids)
    return forbidden(logits, {word[-1] for word in words if _ends_with(moment.ids, word[:-1])})


def min_length(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """No stop token while the sequence is short."""
    return forbidden(logits, rules.stop_ids) if len(moment.ids) < rules.min_length else None


def min_new_tokens(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """No stop token while few tokens are new."""
    return forbidden(logits, rules.stop_ids) if len(moment.ids) - moment.prompt < rules.min_new_tokens else None


def forced_bos_token_id(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """The token after a single start token."""
    token = rules.forced_bos_token_id
    return forced(logits, (token,)) if token is not None and len(moment.ids) == 1 else None


def forced_eos_token_id(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """The last token that there is room for."""
    tokens = rules.forced_eos_token_id
    return forced(logits, tokens) if tokens and len(moment.ids) == moment.limit - 1 else None


def suppress_tokens(rules: Rules, _: Moment, logits: Host) -> Host | None:
    """Tokens that are never written."""
    return forbidden(logits, rules.suppress_tokens)


def begin_suppress_tokens(rules: Rules, moment: Moment, logits: Host) -> Host | None:
    """Tokens that are not written first; after a forced first token, not second."""
    first = moment.prompt + (moment.prompt == 1 and rules.forced_bos_token_id is not None)
    return forbidden(logits, rules.begin_suppress_tokens) if len(moment.ids) == first else None


def forbidden(logits: Host, ids: Collection[int]) -> Host | None:
    """The logits with −∞ at these tokens; None where there are none of them."""
    words = [token for token in ids if token < logits.size]
    if not words:
        return None
    changed = logits.copy()
    changed[words] = -np.inf
    return changed


def forced(logits: Host, ids: Ids) -> Host:
    """0 at these tokens and −∞ everywhere else."""
    changed = np.full_like(logits, -np.inf)
    changed[list(ids)] = 0.0
    return changed


def _ends_with(ids: Ids, tail: Ids) -> bool:
    return len(tail) <= len(ids) and ids[len(ids) - len(tail) :] == tail


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        repetition_penalty,
        no_repeat_ngram_size,
        bad_words_ids,
        min_length,
        min_new_tokens,
        forced_bos_token_id,
        forced_eos_token_id,
        suppress_tokens,
        begin_suppress_tokens,
    )
}
"""In the order in which they act, which is that of the library transformers."""
