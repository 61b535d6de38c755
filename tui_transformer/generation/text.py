"""A text that is written on, in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from tui_transformer.engine.edits import Change
from tui_transformer.errors import UsageError
from tui_transformer.generation.defaults import defaults_of
from tui_transformer.generation.rules import Ids
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.streaming import TextStream
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

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
