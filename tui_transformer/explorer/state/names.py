"""Names of what is explored."""

from __future__ import annotations

from tui_transformer.explorer.state.session import Session
from tui_transformer.text.display import visible


def model_name(session: Session) -> str:
    """The model in one line."""
    summary = session.model.config.summary
    seed = "" if session.model.seed is None else f" · seed {session.model.seed}"
    name = visible(session.model.name)
    return (
        f"{summary}{seed}" if summary.startswith(name) or session.model.folder is None else f"{name} · {summary}{seed}"
    )
