"""A text that is being written, and what the worker finds at a place of it: the next token, and the cache."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import Add
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Change
from tui_transformer.engine.program import Program
from tui_transformer.explorer.widgets.generation import CachePicture
from tui_transformer.generation.cache import KEY, is_cross
from tui_transformer.generation.rules import RULES, Moment
from tui_transformer.generation.sampling import Settings, chosen, leading, softmax
from tui_transformer.generation.text import token_texts
from tui_transformer.generation.writing import State, Writer
from tui_transformer.machine import readable
from tui_transformer.records import dataclass, replace
from tui_transformer.session.steering import alike, end_of, strength_of

AT_FIRST = 16
"""Tokens that are written where something is added and none was written before: so one sees what it does."""


def shares_of(state: State) -> Host:
    """The probability of every token where it is drawn; where the most likely is taken, after the rules alone."""
    return state.probabilities if state.settings.draws else softmax(state.scores)


@dataclass(frozen=True, eq=False)
class Draft:
    """Never changed: every change makes a new one, so undo is a list of them.

    Attributes:
        writer: Used by the worker only.
        states: The state after the prompt, and one after every token that was written.
        shares: The probability with which every token after the prompt was chosen.
        place: The state that is looked at.
        steering: What the writer adds to a step besides, and a slider moves.
        end: Where the slider ends.
        without: The same text as it is written without it, by the same settings.
    """

    writer: Writer
    settings: Settings
    states: tuple[State, ...]
    shares: tuple[float, ...] = ()
    place: int = 0
    steering: Add | None = None
    end: float = 0.0
    without: Draft | None = None

    @property
    def state(self) -> State:
        return self.states[self.place]

    @property
    def at_end(self) -> bool:
        return self.place == len(self.states) - 1

    @property
    def ids(self) -> tuple[int, ...]:
        return self.states[-1].ids

    @property
    def chosen(self) -> int | None:
        """The token that was written at the place, None at the end."""
        return None if self.at_end else self.states[self.place + 1].ids[-1]

    @property
    def marked(self) -> int:
        """The token that was written at the place, or the one that is about to be."""
        return self.state.candidate if self.chosen is None else self.chosen

    @property
    def by_hand(self) -> bool:
        """Whether a token was chosen by hand, or by other settings, and not as these choose; as after a stop token."""
        return any(
            {*was.written[-1:]} & {*self.writer.rules.stop_ids}
            or chosen(was.scores, self.settings, len(was.ids)) != after.ids[-1]
            for was, after in pairwise(self.states)
        )

    @property
    def limit(self) -> int:
        return min(self.state.prompt + self.state.settings.max_new_tokens, self.writer.model.config.max_length)

    def moved(self, place: int) -> Draft:
        return replace(self, place=max(min(place, len(self.states) - 1), 0))

    def written(self, token: int | None = None, before: Watch | None = None) -> Draft:
        """One token after the place, chosen by hand or by the settings; what was after it is left out.

        `before` is called with every step that is about to run, and may raise to end it.

        Raises:
            InputError: There is no room for it.
        """
        self.writer.settings = self.settings
        state, place = self.writer.next(self.state, token, before), self.place + 1
        share = float(shares_of(self.state)[state.ids[-1]])
        shares = (*self.shares[: self.place], share)
        without = None if self.without is None else self.without.up_to(place, before)
        states = (*self.states[:place], state)
        return replace(self, states=states, shares=shares, place=place, without=without)

    def chosen_by(self, settings: Settings) -> Draft:
        """The place under other settings; what was after it is left out."""
        self.writer.settings = settings
        state = self.writer.again(self.state)
        states = (*self.states[: self.place], state)
        without = None if self.without is None else self.without.moved(self.place).chosen_by(settings)
        return replace(self, settings=settings, states=states, shares=self.shares[: self.place], without=without)

    def up_to(self, count: int, before: Watch | None = None) -> Draft:
        """The same with so many tokens after the prompt, as far as the text goes: cut, or written on."""
        draft = replace(self, states=self.states[: count + 1], shares=self.shares[:count])
        draft = draft.moved(len(draft.states) - 1)
        while draft.place < count and draft.state.finished is None:
            draft = draft.written(before=before)
        return draft

    def steered(self, edit: Add | None, edits: Sequence[Change], count: int, before: Watch | None = None) -> Draft:
        """The text written anew, so many tokens of it, with something added to a step; beside it that without.

        Args:
            edit: What is added; None for nothing.
            edits: All that the model is changed by, with it among them.
            count: Tokens after the prompt, as far as the text goes.
            before: As in `written`.
        """
        bare = (self.without or self).up_to(0).chosen_by(self.settings)
        if edit is None:
            return bare.up_to(count, before)
        old, begun = bare.writer, bare.states[0]
        end = self.end
        if not alike(edit, self.steering) or abs(strength_of(edit)) > end:
            end = end_of(edit, old.trace(begun, before=before))
        writer = Writer(
            old.model, self.settings, old.rules, old.source, None if old.mask is None else old.mask[0], edits
        )
        begun = writer.begin(begun.ids, before)
        draft = Draft(writer, self.settings, (begun,), steering=edit, end=end, without=bare)
        return draft.up_to(count, before)


# The next token


@dataclass(frozen=True)
class Choice:
    """A token that might come next.

    Attributes:
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


@dataclass(frozen=True, eq=False)
class GenerationView:
    """A draft with the tokens that may come next at its place, and the cache there.

    Attributes:
        choices: Most likely by the model alone first; forced ones in front.
        cut: Reason → tokens that cannot be chosen because of it.
        layer: The layer whose cache it is.
        memory: What the cache takes, a line for itself, for cross-attention, and for what heads share.
    """

    draft: Draft
    choices: tuple[Choice, ...]
    cut: Mapping[str, int]
    layer: int
    picture: CachePicture
    memory: tuple[str, ...]


def view_of(draft: Draft, layer: int) -> GenerationView:
    """What is shown of a draft; what is missing of it is computed."""
    state, shares = draft.state, shares_of(draft.state)
    reasons, forced = _reasons(draft, shares)
    ids = dict.fromkeys([*forced, *leading(state.logits, 500).tolist(), draft.marked])  # those that are listed
    penalized = state.scores != state.logits if "repetition_penalty" in state.rules else np.zeros(shares.shape)
    listed, alone = [], state.alone
    for token in ids:
        why = next((name for name, out in reasons.items() if out[token]), "")
        note = "" if why else "forced" if token in forced else "penalty" if penalized[token] else ""
        logit, own, share = (float(each[token]) for each in (state.logits, alone, shares))
        listed.append(Choice(token, logit, own, share, why, note))
    cut = {name: int(out.sum()) for name, out in reasons.items() if out.any()}
    writer, name = draft.writer, sublayers(draft.writer)[layer]
    trace, attention, unknown = writer.trace(state), tuple[tuple[float, ...], ...](), ""
    cost = trace.pending([f"{name}.weights"])
    if cost > 300_000_000:  # floating-point operations beside those of writing a token
        unknown = f"not computed: {cost / 1e9:.1f} GFLOP"
    else:
        attention = tuple(map(tuple, trace[f"{name}.weights"][:, -1].tolist()))
    queries, words = shared_queries(writer.model.program(1, 1), name), tuple(token_texts(writer.model, state.ids))
    picture = CachePicture(queries, words, state.computed, writer.model.config.max_length, attention, unknown)
    return GenerationView(draft, tuple(listed), cut, layer, picture, memory(writer, state))


def _reasons(draft: Draft, shares: Host) -> tuple[dict[str, Host], list[int]]:
    """For every reason the tokens that it cuts off, each counted once; and the tokens that a rule forces."""
    state, settings = draft.state, draft.state.settings
    moment = Moment(state.ids, state.prompt, draft.limit)
    changed = {name: RULES[name](draft.writer.rules, moment, state.logits) for name in state.rules}
    out = {name: np.isneginf(logits) for name, logits in changed.items() if logits is not None}
    forced = [np.flatnonzero(~each).tolist() for name, each in out.items() if name.startswith("forced_")]
    if settings.draws and 0 < settings.top_k < state.scores.size:
        out[f"top-k {settings.top_k}"] = left = np.ones(shares.shape, dtype=np.bool_)
        left[leading(state.scores, settings.top_k)] = False
    if settings.draws and settings.top_p < 1:
        out[f"top-p {settings.top_p:g}"] = shares == 0
    before = np.zeros(state.logits.shape, dtype=np.bool_)
    for name, each in out.items():
        out[name], before = each & ~before, before | each
    return out, forced[-1] if forced else []


# The cache


def sublayers(writer: Writer) -> tuple[str, ...]:
    """The self-attention of every layer that writes."""
    names = writer.cache_shapes(1)
    return tuple(name.removesuffix(f".{KEY}") for name in names if name.endswith(KEY) and not is_cross(name))


def shared_queries(program: Program, sublayer: str) -> tuple[tuple[int, ...], ...]:
    """For every key head of an attention, the query heads that read it."""
    query, key = (program.shape(name)[0] for name in program.step(f"{sublayer}.scores").inputs)
    share = query // key
    return tuple(tuple(range(head * share, (head + 1) * share)) for head in range(key))


def memory(writer: Writer, state: State) -> tuple[str, ...]:
    """The memory of keys and values, worked out from their shapes; what there is none of has no line."""
    count, limit = len(state.ids), writer.model.config.max_length
    why = writer.why_unkept(count)
    if why or not state.settings.use_cache:
        return (f"no cache: {why or 'nothing is kept'}, and every token computes all {count:,} rows again",)
    item, shapes = writer.model.backend.dtype.itemsize, writer.cache_shapes(count)
    own = {name: shape for name, shape in shapes.items() if not is_cross(name)}
    cross = {name: shape for name, shape in shapes.items() if is_cross(name)}
    now, fixed = (sum(map(math.prod, each.values())) * item for each in (own, cross))
    lines = [f"{_product(own, 'tokens', item)} = {readable(now)} now, {readable(now * limit // count)} at {limit:,}"]
    if cross:
        product = _product(cross, "source tokens", item)
        lines.append(f"cross-attention: {product} = {readable(fixed)}, computed once")
    queries = shared_queries(writer.model.program(1, 1), sublayers(writer)[0])
    heads, keys = sum(map(len, queries)), len(queries)
    if heads != keys:
        lines.append(f"{heads} query heads read {keys} key heads: 1/{heads // keys} of the memory of {heads}")
    return tuple(lines)


def _product(shapes: Mapping[str, Shape], tokens: str, item: int) -> str:
    """The factors of the size: all layers are alike."""
    heads, count, width = next(iter(shapes.values()))
    layers = len(shapes) // 2
    return (
        f"2 (K, V) × {layers} layer{'s' * (layers > 1)} × {heads} key head{'s' * (heads > 1)} × {count:,} {tokens}"
        f" × d_k {width} × {item} bytes"
    )
