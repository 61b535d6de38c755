"""Several texts written on together: padded to one length, under a mask, in one pass a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.changes import of_pass, standing
from tui_transformer.engine.edits import Change
from tui_transformer.errors import InputError
from tui_transformer.generation.cache import kept_steps
from tui_transformer.generation.defaults import defaults_of
from tui_transformer.generation.one_token import OneToken
from tui_transformer.generation.passes import last_logits
from tui_transformer.generation.rooms import Rooms
from tui_transformer.generation.rules import Ids, Moment, Rules, apply
from tui_transformer.generation.sampling import Settings, chosen
from tui_transformer.model import Model
from tui_transformer.model.inputs import checked_mask, padded


def write_together(
    model: Model,
    prompts: Sequence[Sequence[int]],
    *,
    mask: Sequence[Sequence[int]] | None = None,
    sources: Sequence[Sequence[int]] = (),
    settings: Settings | None = None,
    rules: Rules | None = None,
    edits: Sequence[Change] = (),
) -> tuple[Ids, ...]:
    """Continuations of several prompts, without the prompts: each the same as that of the prompt alone.

    Args:
        model: What writes.
        prompts: Token IDs, of any lengths; with a mask rows of one length, padding at the beginning included. Of an
            encoder–decoder what its decoder begins with, all of one length.
        mask: 1 for every token of the prompts and 0 for padding.
        sources: What the encoder of an encoder–decoder reads, one for each prompt.
        settings: How tokens are chosen.
        rules: What is forced and forbidden; by default what the model's folder says.
        edits: What is changed in every pass; rows count from the beginning of the padded texts.

    Raises:
        InputError: The model does not write, or prompts, mask and sources do not fit each other.
    """
    if not prompts or not all(len(prompt) for prompt in prompts):
        raise InputError("there is nothing to write on from: give at least one prompt, and a token in each")
    if model.has_decoder != bool(sources) or (sources and len(sources) != len(prompts)):
        raise InputError(f"{model.name}: give a source for every prompt where an encoder reads one, and else none")
    program = model.program(1, 1)
    kept_steps(program)
    changes = tuple(standing(program, edit) for edit in edits)
    rows, seen = _rows(prompts, mask, model.config.pad_id, both=bool(sources))
    texts = [tuple(int(token) for token in row[real]) for row, real in zip(rows, seen, strict=True)]
    followed = defaults_of(model).rules if rules is None else rules
    batch = _Batch(
        model, settings or Settings(), followed, rows, seen, changes, *_sources(sources, model.config.pad_id)
    )
    return batch.run(texts)


def _rows(
    prompts: Sequence[Sequence[int]], mask: Sequence[Sequence[int]] | None, pad_id: int | None, *, both: bool
) -> tuple[Host, Host]:
    """Prompts as rows of one length, and which of their tokens are no padding."""
    lengths = {len(prompt) for prompt in prompts}
    if both and (len(lengths) > 1 or mask is not None):
        raise InputError("what the decoders begin with is of one length and has no padding")
    if mask is not None and len(lengths) > 1:
        raise InputError("prompts with a mask are rows of one length")
    if mask is None:
        turned, shown = padded([list(reversed(prompt)) for prompt in prompts], pad_id)
        return np.array(turned)[:, ::-1], np.array(shown, dtype=np.bool_)[:, ::-1]
    rows = np.array(prompts)
    seen = checked_mask(mask, rows)
    if seen is None or not seen[:, -1].all():
        raise InputError("a prompt ends with a token that is no padding: put padding in front")
    return rows, seen


def _sources(sources: Sequence[Sequence[int]], pad_id: int | None) -> tuple[Host | None, Host | None]:
    if not sources:
        return None, None
    rows, mask = padded(sources, pad_id)
    return np.array(rows), np.array(mask, dtype=np.bool_)


@dataclass(eq=False)
class _Batch:
    """Rows that grow together.

    Attributes:
        rows: Token IDs, padding in front; B × n.
        seen: Which of them are no padding.
        source: What the encoder reads, padding behind, and which of it is none.
    """

    model: Model
    settings: Settings
    rules: Rules
    rows: Host
    seen: Host
    edits: tuple[Change, ...]
    source: Host | None = None
    source_seen: Host | None = None
    kept: Mapping[str, Array] = field(default_factory=dict)
    past: int = 0
    step: OneToken | None = None

    def run(self, texts: list[Ids]) -> tuple[Ids, ...]:
        """A token after the other, until all have ended."""
        prompts = [len(text) for text in texts]
        alike = len(kept_steps(self.model.program(1, 1)))
        rooms = Rooms(self.model.backend, self.model.config.max_length, alike)
        going = [self._goes_on(text, prompt) for text, prompt in zip(texts, prompts, strict=True)]
        while any(going) and self.rows.shape[1] < self.model.config.longest:
            logits = self._logits(rooms)
            tokens = np.full(len(texts), self.model.config.pad_id or 0)
            for place in np.flatnonzero(going):
                tokens[place] = self._next(texts[place], prompts[place], logits[place])
                texts[place] = (*texts[place], int(tokens[place]))
                going[place] = self._goes_on(texts[place], prompts[place])
            self.rows = np.concatenate([self.rows, tokens[:, None]], axis=1)
            self.seen = np.concatenate([self.seen, np.ones((len(texts), 1), dtype=np.bool_)], axis=1)
        return tuple(text[prompt:] for text, prompt in zip(texts, prompts, strict=True))

    def _goes_on(self, text: Ids, prompt: int) -> bool:
        ended = len(text) > prompt and text[-1] in self.rules.stop_ids
        room = min(prompt + self.settings.max_new_tokens, self.model.config.max_length)
        return not ended and len(text) < room

    def _next(self, text: Ids, prompt: int, logits: Host) -> int:
        room = min(prompt + self.settings.max_new_tokens, self.model.config.max_length)
        scores, _ = apply(self.rules, Moment(text, prompt, room), logits)
        return chosen(scores, self.settings, len(text))

    def _logits(self, rooms: Rooms) -> Host:
        """Of the token after every row; keys and values of all are kept where they serve a longer sentence."""
        length = self.rows.shape[1]
        past = self.past if self.settings.use_cache and self.model.config.keeps(self.past, length) else 0
        alike = self.model.config.keeps(2, length)  # the steps of one token are those of a sentence of two
        one = alike and 0 < past == length - 1
        logits, self.kept = self._one(past, rooms) if one else self._several(past)
        self.past = length
        rows = np.asarray(self.model.backend.to_host(logits)[:, -1])
        if not np.isfinite(rows.max(axis=1)).all():
            raise InputError(f"{self.model.name}: the logits of the next token overflow: try --dtype float64")
        return rows

    def _inputs(self) -> tuple[tuple[Host, ...], Host | None]:
        """Rows as the model takes them, and their mask: of the source first, where there is one."""
        return ((self.rows,), self.seen) if self.source is None else ((self.source, self.rows), self.source_seen)

    def _one(self, past: int, rooms: Rooms) -> tuple[Array, Mapping[str, Array]]:
        rows, mask = self._inputs()
        lengths, givens = self.model.inputs_after(past, *rows, mask=mask)
        if self.step is None:
            self.step = OneToken.of(self.model.program_of(lengths), self.model.weights, self.edits)
        return self.step.run(givens, self.kept, rooms)

    def _several(self, past: int) -> tuple[Array, Mapping[str, Array]]:
        rows, mask = self._inputs()
        trace = self.model.trace_after(self.kept if past else {}, past, *rows, mask=mask, budget=0)
        return last_logits(trace.edited(of_pass(self.edits, trace.program, past)))
