"""The next token and the cache at a place of the text, gathered by the worker before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.explorer.tools.generate.cache import Memory, memory, picture
from tui_transformer.explorer.tools.generate.choices import Choices, choices_of
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.widgets.cache_map import CachePicture
from tui_transformer.generation.text import token_texts


@dataclass(frozen=True, eq=False)
class Gathered:
    """A draft with the next token at its place, and the cache there."""

    draft: Draft
    choices: Choices
    picture: CachePicture
    memory: Memory


def gathered(draft: Draft, layer: int) -> Gathered:
    """Gather what is shown; what is missing of it is computed."""
    writer, state = draft.writer, draft.state
    words = tuple(token_texts(writer.model, state.ids))
    return Gathered(
        draft,
        choices_of(state, writer.rules, draft.limit, draft.marked),
        picture(writer, state, layer, words),
        memory(writer, state),
    )
