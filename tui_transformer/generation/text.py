"""A text that is written on, in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from tui_transformer.engine.edits import Change
from tui_transformer.errors import UsageError
from tui_transformer.generation.rules import Ids, defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import visible

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
        prompt: A text or token IDs; of an encoder–decoder, what its decoder has written so far.
        source: The text or token IDs that the encoder of an encoder–decoder reads.
        edits: Changes that are made in every pass; rows count from the beginning of the text.
        settings: Those of `Settings`: greedy, temperature, top_k, top_p, seed, max_new_tokens; by default as the
            model's folder says. What only a draw needs asks for one.

    Raises:
        InputError: The model does not write, or something that was given cannot be used.
    """
    read = model.encode(source).ids if isinstance(source, str) else tuple(source)
    defaults = defaults_of(model)
    writer = Writer(model, _settings(defaults.settings, settings), defaults.rules, read, edits=edits)
    ids: Ids = writer.prompt(prompt).ids if isinstance(prompt, str) else tuple(prompt)
    stream = TextStream(model, ids)
    return "".join((*map(stream.add, written(writer, ids)), stream.end()))


def written(writer: Writer, prompt: Ids) -> Iterator[int]:
    """The tokens behind a prompt, one at a time; none is computed only to end."""
    state = writer.begin(prompt)
    end = state.finished
    while end is None:
        yield state.candidate
        end = writer.end((*state.ids, state.candidate), state.prompt)
        if end is None:
            state = writer.next(state)


def _settings(usual: Settings, given: dict[str, Any]) -> Settings:
    known = [field.name for field in fields(Settings)]
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        raise UsageError(f"no setting is called {wrong}: use {', '.join(known)}")
    greedy = usual.greedy and not given.keys() & DRAWING
    return replace(usual, **{"greedy": greedy} | given)


INCOMPLETE = "\ufffd"
"""Sign that a character of several bytes is decoded to while some of them are missing."""

LISTS = ("words", "characters", "wordpiece")
"""Kinds of vocabularies whose unknown word is a word like others."""


class TextStream:
    """Gives, for each token, the text that it adds behind a prompt.

    It is decoded together with the tokens before it and the difference given, so that spaces between pieces are right.
    Bytes that are half of a character are held back until the rest is there. Special tokens are left out, as they stand
    for no text (an unknown word of a word list is not), and so are IDs past the vocabulary, which some models have.
    Control characters are made visible, all but the ends of lines.
    """

    def __init__(self, model: Model, prompt: Sequence[int] = ()) -> None:
        """The prompt itself is not given again; the start token of a decoder beside an encoder is no text."""
        self._ids = list(prompt[1:] if model.has_decoder else prompt)
        self._tokenizer = None if model.tokenizer is None else target_tokenizer(model.tokenizer)
        words = model.target_vocabulary
        self._words = 0 if words is None else words.size
        self._hidden: frozenset[int] = frozenset() if words is None else words.special_ids
        if words is not None and words.kind in LISTS:
            self._hidden -= {words.unknown_id}
        self._context, self._read = 0, len(self._ids)

    def prompt(self) -> str:
        """The text of the tokens that were given, before any other is added."""
        return self._text(0, self._read).rstrip(INCOMPLETE)

    def add(self, token: int) -> str:
        """The text that is whole with this token, often of one token, sometimes none."""
        self._ids.append(token)
        more = self.end()
        if not more or more.endswith(INCOMPLETE):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return more

    def end(self) -> str:
        """Text that was held back."""
        before = self._text(self._context, self._read).rstrip(INCOMPLETE)
        return self._text(self._context, len(self._ids))[len(before) :]

    def _text(self, start: int, stop: int) -> str:
        """The text of some of the tokens."""
        ids = self._ids[start:stop]
        if self._tokenizer is None:
            return "".join(f" {token}" for token in ids)
        text = self._tokenizer.decode([token for token in ids if token < self._words and token not in self._hidden])
        return "\n".join(map(visible, text.split("\n")))
