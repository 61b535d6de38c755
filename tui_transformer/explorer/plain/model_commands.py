"""Another model, and one that computes something otherwise, by what is typed."""

from __future__ import annotations

from tui_transformer.errors import InputError
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.edit_format import break_titles, unknown_break
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible


def opened(session: Session, name: str) -> tuple[Session, str]:
    """A session of a model with its own sentence, and what has changed.

    Raises:
        InputError: It is not named, or cannot be opened.
    """
    if not name:
        raise InputError("write the model behind it: open story")
    other = open_session(ModelOptions(model=name, budget=session.budget))
    return other, f"model to {visible(other.model.name)}, sentence to {visible(other.text)}"


def broken(session: Session, name: str) -> tuple[Session, str]:
    """The session with something broken, or mended if it was; without a name with all of it mended.

    Raises:
        InputError: There is nothing of that name, or not in this model.
    """
    if not name and not session.breaks:
        raise InputError("write behind it what to break: break no-scale")
    if problem := unknown_break([name] if name else ()):
        raise InputError(problem)
    from tui_transformer.diagnosis.breaking import BREAKS, fitting

    names = [each for each in session.breaks if each != name] if name else []
    if not name or name in session.breaks:
        mended = [each for each in session.breaks if each not in names]
        return session.with_breaks(*names), f"mended: {' and '.join(break_titles(mended))}"
    chosen = next(each for each in BREAKS if each.name == name)
    if chosen not in fitting(session.with_breaks().trace):
        raise InputError(f"nothing to break: {chosen.absent}")
    return session.with_breaks(*names, name), f"broken: {chosen.title}"
