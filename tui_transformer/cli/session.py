"""A model and its input, as the headless commands use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import note
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
from tui_transformer.text.samples import sample_sentence
from tui_transformer.views.step_view import Labels

EXAMPLE_IDS = 8
"""Token IDs of the example for a model that has no vocabulary."""


@dataclass(frozen=True, eq=False)
class Session:
    """The model, the trace of the input that was given, and the words beside rows and columns."""

    model: Model
    trace: Trace
    labels: Labels


def open_session(flags: Flags, ids: tuple[int, ...] | None = None) -> Session:
    """Load the model and read its input.

    Args:
        flags: What was given.
        ids: Token IDs to use where neither a sentence nor IDs were given.

    Raises:
        InputError: Something that was given cannot be used.
    """
    given, options = flags.token_ids(), flags.options()
    model = options.load()
    if not model.config.vocab_size:
        return Session(model, model.trace(flags.text, ids=given, budget=options.budget), Labels())
    chosen = given if given is not None or flags.text is not None else ids
    found, words = _encoded(model, flags) if chosen is None else (chosen, _words(model, chosen))
    trace = model.trace(ids=found, budget=options.budget)
    return Session(model, trace, Labels({"tokens": words}, model.word))


def _encoded(model: Model, flags: Flags) -> tuple[Sequence[int], tuple[str, ...]]:
    """IDs and words of the sentence, or of an example where there is none; what was cut is said."""
    if flags.text is None and model.vocabulary is None:
        ids = range(min(EXAMPLE_IDS, model.config.vocab_size))
        return ids, _words(model, ids)
    text = sample_sentence(model.vocabulary) if flags.text is None and model.vocabulary else flags.text
    encoding = model.encode(text or "", cut=flags.cut)
    if encoding.cut:
        note(f"the sentence is cut: the model reads {len(encoding.tokens):,} tokens, {encoding.cut:,} are left out")
    return encoding.ids, tuple(token.text for token in encoding.tokens)


def _words(model: Model, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(model.word, ids))
