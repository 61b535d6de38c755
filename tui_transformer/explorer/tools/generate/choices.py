"""The next token: the likely ones, with what rules and settings make of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.generation.rules import RULES, Moment, Rules
from tui_transformer.generation.sampling import leading, softmax
from tui_transformer.generation.writing import State

MOST_SHOWN = 500
"""Tokens that are listed."""

FORCED, PENALTY = "forced", "penalty"
"""Effects of rules on a token that can be chosen."""


@dataclass(frozen=True)
class Choice:
    """A token that might come next.

    Attributes:
        token: Its ID.
        logit: As the model gives it.
        alone: Its probability by the model alone, the softmax of the logits.
        share: Its probability after rules and settings; where the most likely token is taken, after the rules.
        why: Why it cannot be chosen, "" where it can.
        note: What a rule did to it, where it can be chosen.
    """

    token: int
    logit: float
    alone: float
    share: float
    why: str = ""
    note: str = ""


@dataclass(frozen=True)
class Choices:
    """The tokens that are listed, and how many of all were cut off, by what.

    Attributes:
        listed: Most likely by the model alone first; forced ones in front.
        total: Tokens of the vocabulary.
        cut: Reason → tokens that cannot be chosen because of it.
    """

    listed: tuple[Choice, ...]
    total: int
    cut: Mapping[str, int]

    @property
    def left(self) -> int:
        """Tokens that can be chosen."""
        return self.total - sum(self.cut.values())


def shares_of(state: State) -> Host:
    """The probability of every token where it is drawn; where the most likely is taken, after the rules alone."""
    return state.probabilities if state.settings.draws else softmax(state.scores)


def choices_of(state: State, rules: Rules, limit: int, marked: int) -> Choices:
    """The tokens that may come next.

    Args:
        state: The text so far.
        rules: Those of the model.
        limit: Tokens that the text may have, as for the rules.
        marked: A token that is to be listed in any case.
    """
    shares, alone = shares_of(state), state.alone
    reasons, forced = _reasons(state, rules, limit, shares)
    ids = dict.fromkeys([*forced, *leading(state.logits, MOST_SHOWN).tolist(), marked])
    names = list(reasons)
    why = {token: next((name for name in names if reasons[name][token]), "") for token in ids}
    changed = state.scores != state.logits
    listed = tuple(
        Choice(
            token,
            float(state.logits[token]),
            float(alone[token]),
            float(shares[token]),
            why[token],
            _note(state, token in forced, bool(changed[token])) if not why[token] else "",
        )
        for token in ids
    )
    cut = {name: int(left_out.sum()) for name, left_out in reasons.items() if left_out.any()}
    return Choices(listed, state.logits.size, cut)


def _note(state: State, forced: bool, changed: bool) -> str:  # noqa: FBT001 - two facts of one token
    if forced:
        return FORCED
    return PENALTY if changed and "repetition_penalty" in state.rules else ""


def _reasons(state: State, rules: Rules, limit: int, shares: Host) -> tuple[dict[str, Host], list[int]]:
    """For every reason the tokens that it cuts off, each counted once; and the tokens that a rule forces."""
    cut = np.zeros(state.logits.shape, dtype=np.bool_)
    by_reason, forced = {}, list[int]()
    for name, out in _ruled_out(state, rules, limit).items():
        by_reason[name] = out & ~cut
        cut |= out
        if name.startswith("forced_"):
            forced = np.flatnonzero(~out).tolist()
    for name, out in _settled_out(state, shares).items():
        by_reason[name] = out & ~cut
        cut |= out
    return by_reason, forced


def _ruled_out(state: State, rules: Rules, limit: int) -> dict[str, Host]:
    moment = Moment(state.ids, state.prompt, limit)
    changed = {name: RULES[name](rules, moment, state.logits) for name in state.rules}
    return {name: np.isneginf(logits) for name, logits in changed.items() if logits is not None}


def _settled_out(state: State, shares: Host) -> dict[str, Host]:
    """The tokens that top-k and top-p leave out, where tokens are drawn."""
    settings = state.settings
    if not settings.draws:
        return {}
    by_setting = {}
    if 0 < settings.top_k < state.scores.size:
        by_setting[f"top-k {settings.top_k}"] = np.ones(shares.shape, dtype=np.bool_)
        by_setting[f"top-k {settings.top_k}"][leading(state.scores, settings.top_k)] = False
    if settings.top_p < 1:
        by_setting[f"top-p {settings.top_p:g}"] = shares == 0
    return by_setting
