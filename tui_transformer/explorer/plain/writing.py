"""A text that is written on without a screen, and the number of times that something is added to a step meanwhile."""

from __future__ import annotations

from tui_transformer.engine.changes import Add
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.generate.draft import AT_FIRST, Draft
from tui_transformer.explorer.tools.generate.steering import Start, prompt_of
from tui_transformer.generation.text import token_texts
from tui_transformer.records import replace
from tui_transformer.session.edit_format import read_number
from tui_transformer.session.edit_values import EXAMPLES
from tui_transformer.session.session import Session
from tui_transformer.session.steering import at_strength, end_of, moved, said, steered, steering, strength_of
from tui_transformer.text.display import visible


def told(session: Session, words: str = "") -> str:
    """The text that the model writes, so many tokens; where something is added, the text without it as well.

    What is to be known of it stands behind: what is broken here is not broken there.

    Raises:
        InputError: The model writes nothing, or no number of tokens is named.
    """
    if words and not (words.isdecimal() and int(words[:9]) > 0):
        raise InputError(f"{words[:20]!r} is no number of tokens: generate 20")
    count, start = int(words[:9]) if words else AT_FIRST, Start.of(session)
    writer, edit = start.writer, steering(session.edits, session.base.program)
    writer.settings = replace(writer.settings, max_new_tokens=count)
    begun = Draft(writer, writer.settings, (writer.begin(prompt_of(writer, session)),))
    if edit is None:
        return "; ".join((f"written: {_text(begun.up_to(count))}", *start.remarks))
    draft = begun.steered(edit, start.beside(edit), count)
    without = "" if draft.without is None else f"without: {_text(draft.without)}; "
    slider = f"its slider goes from {minus(f'{-draft.end:g}')} to {draft.end:g}"
    return "; ".join((f"{without}with {said(edit)}: {_text(draft)}", slider, *start.remarks))


def _text(draft: Draft) -> str:
    return f"“{visible(''.join(token_texts(draft.writer.model, draft.ids)))}”"


def slid(session: Session, by: int) -> Session:
    """Something added more or fewer times, by steps of its slider.

    Raises:
        InputError: Nothing is added.
    """
    edit = _steering(session)
    return steered(session, at_strength(edit, moved(strength_of(edit), end_of(edit, steered(session, None).trace), by)))


def set_to(session: Session, words: str) -> Session:
    """Something added so many times.

    Raises:
        InputError: Nothing is added, or it is no number.
    """
    strength = read_number(words, session.model.backend.dtype)
    return steered(session, at_strength(_steering(session), strength))


def _steering(session: Session) -> Add:
    edit = steering(session.edits, session.base.program)
    if edit is None:
        raise InputError(f"nothing is added to a step: {EXAMPLES}")
    return edit
