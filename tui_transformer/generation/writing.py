"""Writing on: a model, settings and rules give one state after another, each with a distribution for its next token."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.changes import of_pass, standing
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import Change, single
from tui_transformer.engine.parts import DEFAULT_BUDGET
from tui_transformer.engine.program import array_of_numbers
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.cache import (
    Cache,
    OneToken,
    Rooms,
    is_cross,
    kept_steps,
    last_logits,
    products_of_one,
    seen_ahead,
)
from tui_transformer.generation.rules import Ids, Moment, Rules, apply, defaults_of
from tui_transformer.generation.sampling import Draw, Settings, chosen, draw, leading, probabilities, softmax
from tui_transformer.generation.text import TextStream
from tui_transformer.model import Model
from tui_transformer.model.checks import as_plain
from tui_transformer.model.texts import checked_mask, unpadded_ids
from tui_transformer.records import dataclass, fields, replace
from tui_transformer.text.encoding import Encoding, Token

DRAWING = frozenset(("temperature", "top_k", "top_p", "seed"))
"""Settings that ask for a draw."""


def generate(
    model: Model,
    prompt: str | Sequence[int] = "",
    *,
    source: str | Sequence[int] = (),
    edits: Sequence[Change] = (),
    **settings: Any,
) -> str:
    """The text that a model writes behind a prompt, without the prompt.

    Args:
        model: A decoder, or an encoder–decoder.
        prompt: A text or token IDs, whose padding is left out; of an encoder–decoder, what its decoder has written so
            far.
        source: The text or token IDs that the encoder of an encoder–decoder reads.
        edits: Changes that are made in every pass; rows count from the beginning of the text. Ablations of all tokens
            of the prompt, as targets make them, are of all that follow, too.
        settings: Those of `Settings`: greedy, temperature, top_k, top_p, seed, max_new_tokens; by default as the
            model's folder says. What only a draw needs asks for one.

    Raises:
        InputError: The model does not write, or something that was given cannot be used.
    """
    read = model.encode(source).ids if isinstance(source, str) else tuple(source)
    if read and not model.has_decoder:
        raise UsageError("this model has no encoder that reads a source: it goes on from the prompt")
    defaults = defaults_of(model)
    reader = Writer(model, source=read)
    ids: Ids = reader.prompt(prompt).ids if isinstance(prompt, str) else tuple(prompt)
    if not isinstance(prompt, str) and not model.has_decoder and set(map(np.ndim, ids)) == {0}:
        ids = reader.unpadded(ids) or ids
    lengths = (len(each) or 1 for each in ((read, ids) if model.has_decoder else (ids,)))
    program = model.program(*lengths)
    meant = [standing(program, edit) for edit in single(edits, program)]
    known = [field.name for field in fields(Settings)]
    wrong = next((name for name in settings if name not in known), None)
    if wrong is not None:
        raise UsageError(f"no setting is called {wrong}: use {', '.join(known)}")
    usual = {"greedy": defaults.settings.greedy and not settings.keys() & DRAWING}
    asked = replace(defaults.settings, **usual | {name: as_plain(value) for name, value in settings.items()})
    writer = Writer(model, asked, defaults.rules, read, edits=meant)
    stream, texts = TextStream(model, ids), list[str]()
    state = writer.begin(ids)
    end = state.finished
    while end is None:
        texts.append(stream.add(state.candidate))
        end = writer.end((*state.ids, state.candidate), state.prompt)
        if end is None:  # none is computed only to end
            state = writer.next(state)
    return "".join((*texts, stream.end()))


@dataclass(frozen=True)
class Candidate:
    """A token that may come next, with its place among all tokens under the rules, from 1, and its logit in the model.

    Its probability `alone` is the softmax of the logits; with `probability` it is chosen: after rules, temperature,
    top-k and top-p.
    """

    token: int
    rank: int
    logit: float
    alone: float
    probability: float


@dataclass(frozen=True, eq=False)
class State:
    """A text so far, and what may come next. It holds logits and no cache, so that many can be kept.

    `ids` is the sequence that grows, the first `prompt` of which were given (or are the start token). `logits` are
    those of the model for the next token, on the host, `scores` these under the rules: the same array where none acted,
    else `rules` names those that did. The settings choose the `candidate`. `finished` says why writing ends here, None
    where it goes on. For this state so many rows were `computed`, and so many `kept` from before.
    """

    ids: Ids
    prompt: int
    logits: Host
    scores: Host
    rules: tuple[str, ...]
    settings: Settings
    candidate: int
    finished: str | None
    computed: int
    kept: int
    seconds: float

    @property
    def written(self) -> Ids:
        """The tokens after the prompt."""
        return self.ids[self.prompt :]

    @property
    def alone(self) -> Host:
        """The probability of every token as the model gives it: softmax of the logits. Worked out when asked for."""
        return softmax(self.logits)

    @property
    def probabilities(self) -> Host:
        """With which every token is chosen: after rules, temperature, top-k and top-p. Worked out when asked for."""
        return probabilities(self.scores, self.settings)

    @property
    def draw(self) -> Draw | None:
        """The number that chose the candidate, and where it fell; None where the most likely token is taken."""
        return draw(self.probabilities, self.settings.seed, len(self.ids)) if self.settings.draws else None

    def likely(self, count: int) -> tuple[Candidate, ...]:
        """The most likely tokens under the rules, most likely first; equal ones in order of ID."""
        alone, shares = self.alone, self.probabilities
        return tuple(
            Candidate(int(token), rank, float(self.logits[token]), float(alone[token]), float(shares[token]))
            for rank, token in enumerate(leading(self.scores, count), 1)
        )

    def of(self, token: int) -> Candidate:
        """One token among all."""
        before = np.count_nonzero(self.scores > self.scores[token])
        before += np.count_nonzero(self.scores[:token] == self.scores[token])
        alone, share = float(self.alone[token]), float(self.probabilities[token])
        return Candidate(token, int(before) + 1, float(self.logits[token]), alone, share)


class Writer:
    """Writes on, one token at a time. It holds the cache of the longest prefix that was computed last.

    Going back is choosing an earlier state again: the cache is cut to what both have in common. `settings` may be
    replaced between two tokens (see `again`). The rules are by default what the model's folder says. Of an
    encoder–decoder the encoder reads the `source`, whose `mask` has 0 for padding, None for what the pad IDs say.
    `edits` are changed in every pass; their rows count from the beginning of the text. Where one lets a token see later
    ones, nothing is kept, as every token changes those before it (see `why_unkept`).
    """

    def __init__(
        self,
        model: Model,
        settings: Settings | None = None,
        rules: Rules | None = None,
        source: Sequence[int] = (),
        mask: Sequence[int] | None = None,
        edits: Sequence[Change] = (),
    ) -> None:
        """Nothing is computed yet.

        InputError where the model does not write, an encoder–decoder has no source, or an edit is of one sentence
        alone.
        """
        if model.has_decoder and not source:
            raise InputError(f"{model.name} writes from a sentence that its encoder reads: give one")
        self.model, self.settings = model, settings or Settings()
        self.rules = defaults_of(model).rules if rules is None else rules
        self.source: Ids = tuple(source) if model.has_decoder else ()
        self.mask = None if mask is None or not self.source else [tuple(mask)]
        checked_mask(self.mask, np.array([self.source]))
        self.cache = Cache()
        self._ids: Ids = ()
        program = model.program(1, 1)
        growing = sum(not is_cross(name) for name in kept_steps(program))
        self._rooms = Rooms(model.backend, model.config.max_length, growing)
        for group in products_of_one(program):
            model.weights.read_together({step.inputs[1]: program.shape(step.inputs[1]) for step in group})
        meant = (standing(program, edit) for edit in single(edits, program))
        # by their own names: the end of one of the encoder's may be that of another where its steps are not
        named = ((edit, array_of_numbers(program, edit.name)[0]) for edit in meant)
        self.edits = tuple(replace(edit, name=name) for edit, name in named)  # type: ignore[type-var]
        lengths = (1, 2) if model.has_decoder else (2,)
        self._ahead = seen_ahead(self.edits, model.program(*lengths)) if self.edits else {}

    # Writing

    def prompt(self, text: str = "", *, cut: bool = False) -> Encoding:
        """The tokens that a text is written on from: of an encoder–decoder, behind its start token.

        What the tokenizer puts behind a text is left out: it has not come to the end. InputError for a text that cannot
        be read, or has no tokens.
        """
        if self.model.has_decoder:
            encoding = self.model.encode_target(text, cut=cut)
            (start,) = self._start()
            first = Token(start, self.model.target_word(start), 0, 0)
            return replace(encoding, tokens=(first, *encoding.tokens[1:]))
        encoding = self.model.encode(text, cut=cut)
        behind = takewhile(lambda token: token.special and token.start == token.end, reversed(encoding.tokens))
        return replace(encoding, tokens=encoding.tokens[: len(encoding.tokens) - sum(1 for _ in behind)])

    def unpadded(self, prompt: Sequence[int], mask: Sequence[int] | None = None) -> Ids:
        """The tokens of a prompt that are no padding: what a decoder alone writes on from.

        Without a mask, runs of the pad ID at both ends are padding, unless it ends a text and so may stand in one.
        """
        rows = np.array([tuple(prompt)])
        visible = checked_mask(mask, rows)
        if visible is None and self.model.config.pad_id not in (None, *self.rules.stop_ids):
            visible = unpadded_ids(rows, self.model.config, begins=False)
        return tuple(prompt) if visible is None else tuple(rows[0][visible[0]].tolist())

    def begin(self, prompt: Sequence[int] = (), before: Watch | None = None) -> State:
        """The state after a prompt; of an encoder–decoder, after its start token where nothing is given.

        `before` is called with every step that is about to run, and may raise to end it.

        Raises:
            InputError: No prompt, IDs outside the vocabulary, or more than the model reads.
        """
        ids = tuple(prompt) or self._start()
        if not ids:
            raise InputError("there is nothing to write on from: give a text or at least one token ID")
        return self._state(ids, len(ids), before)

    def _start(self) -> Ids:
        given = self.rules.decoder_start_token_id
        start = self.model.config.start_id if given is None else given
        return (start or 0,) if self.model.has_decoder else ()

    def next(self, state: State, token: int | None = None, before: Watch | None = None) -> State:
        """The state one token later than any state of this writer; the token is chosen by hand, or by the settings.

        `before` is as in `begin`.

        Raises:
            InputError: The model reads no more tokens, or there is no such token.
        """
        if len(state.ids) >= self.model.config.max_length:
            raise InputError(
                f"{self.model.name} reads {self.model.config.max_length:,} tokens: there is no room for more"
            )
        return self._state((*state.ids, state.candidate if token is None else token), state.prompt, before)

    def again(self, state: State) -> State:
        """The same state under the settings and rules that the writer has now; nothing is computed by the model."""
        return self._decided(state.ids, state.prompt, state.logits, (state.computed, state.kept, state.seconds))

    def run(self, state: State) -> Iterator[State]:
        """This state and those after it, until one is finished."""
        yield state
        while state.finished is None:
            state = self.next(state)
            yield state

    def end(self, ids: Ids, prompt: int) -> str | None:
        """Why a sequence ends: a stop token, the length that was asked for, or the model's; None where it goes on."""
        if len(ids) > prompt and ids[-1] in self.rules.stop_ids:
            return f"stop token {ids[-1]}"
        if len(ids) - prompt >= self.settings.max_new_tokens:
            return f"{self.settings.max_new_tokens:,} new tokens, as asked"
        if len(ids) >= self.model.config.max_length:
            return f"the model reads no more than {self.model.config.max_length:,} tokens"
        return None

    # What was computed

    def trace(self, state: State, budget: int = DEFAULT_BUDGET, before: Watch | None = None) -> Trace:
        """The values of the pass that gave a state: of its computed rows, with the kept ones before them.

        Where those are not kept any more they are computed again, with `before` as in `begin`.
        """
        if self._served(state.ids) < state.kept:
            self._compute(state.ids[: state.kept], 0, before)
        cache = self.cache.cut(state.kept)
        trace = self.model.trace_after(
            cache.arrays, cache.length, *self._inputs(state.ids), mask=self.mask, budget=budget
        )
        return trace.edited(of_pass(self.edits, trace.program, cache.length))

    def cache_shapes(self, length: int) -> Mapping[str, Shape]:
        """The shapes of keys and values of so many tokens: g × tokens × d_k."""
        lengths = (len(self.source), length) if self.source else (length, 0)
        program = self.model.program(*lengths)
        return {name: program.shape(step) for name, step in kept_steps(program).items()}

    @cached_property
    def limit_bytes(self) -> int:
        """Bytes that the cache takes when the model reads no more."""
        shapes = self.cache_shapes(self.model.config.max_length).values()
        return sum(map(math.prod, shapes)) * self.model.backend.dtype.itemsize

    def why_unkept(self, length: int) -> str:
        """Why nothing is kept of so many tokens, whatever the settings say; "" where it is."""
        name = next((name for name, tokens in self._ahead.items() if tokens > length), "")
        return f"{name} is edited so that tokens see later ones" if name else ""

    # Computing

    def _inputs(self, ids: Ids) -> tuple[list[Ids], ...]:
        return ([self.source], [ids]) if self.source else ([ids],)

    def _state(self, ids: Ids, prompt: int, before: Watch | None) -> State:
        """The state of a sequence, of which only what is not kept is computed."""
        started = time.perf_counter()
        kept = min(self._served(ids), len(ids) - 1) if self.settings.use_cache else 0
        kept = 0 if self.why_unkept(kept) else kept
        logits = self._compute(ids, kept, before)
        return self._decided(ids, prompt, logits, (len(ids) - kept, kept, time.perf_counter() - started))

    def _served(self, ids: Ids) -> int:
        """How many tokens of a sequence have keys and values that are kept and that serve one of its length."""
        if not self.model.config.keeps(len(self._ids), len(ids)):
            return 0
        shorter = min(len(self._ids), len(ids))
        if self._ids[:shorter] == ids[:shorter]:
            return shorter
        return next(i for i, (one, other) in enumerate(zip(self._ids, ids, strict=False)) if one != other)

    def _compute(self, ids: Ids, kept: int, before: Watch | None) -> Host:
        """The logits of the last token; keys and values of all are kept from now on."""
        cache = self.cache.cut(kept)
        alike = self.model.config.keeps(2, len(ids))  # the steps of one token are those of a sentence of two
        arrays: Mapping[str, Array]
        if alike and 0 < kept == len(ids) - 1:
            _, givens = self.model.inputs_after(cache.length, *self._inputs(ids), mask=self.mask)
            logits, arrays = self._step.run(givens, cache.arrays, self._rooms, before)
        else:
            trace = self.model.trace_after(cache.arrays, cache.length, *self._inputs(ids), mask=self.mask, budget=0)
            logits, arrays = last_logits(trace.edited(of_pass(self.edits, trace.program, cache.length)), before)
        keeps = self.settings.use_cache and not self.why_unkept(len(ids))
        self.cache, self._ids = (Cache(arrays, len(ids)), ids) if keeps else (Cache(), ())
        row = np.asarray(self.model.backend.to_host(logits)[0, -1])
        if not np.isfinite(row.max()):
            raise InputError(f"{self.model.name}: the logits of the next token overflow: try dtype float64")
        return row

    @cached_property
    def _step(self) -> OneToken:
        lengths, _ = self.model.inputs_after(1, *self._inputs((0, 0)), mask=self.mask)
        return OneToken.of(self.model.program_of(lengths), self.model.weights, self.edits)

    def _decided(self, ids: Ids, prompt: int, logits: Host, spent: tuple[int, int, float]) -> State:
        """The state with these logits: rules first, then the settings."""
        room = min(prompt + self.settings.max_new_tokens, self.model.config.max_length)
        scores, acted = apply(self.rules, Moment(ids, prompt, room), logits)
        candidate = chosen(scores, self.settings, len(ids))
        end = self.end(ids, prompt)
        return State(ids, prompt, logits, scores, acted, self.settings, candidate, end, *spent)
