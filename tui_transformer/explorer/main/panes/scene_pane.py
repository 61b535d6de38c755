"""A pane that draws what is shown by itself: it is handed every new scene."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.state.session import Session


@runtime_checkable
class ScenePane(Protocol):
    """A widget that the presenter finds on the screen. What it wants of others it posts as messages."""

    def show_scene(self, session: Session, scene: Scene | None) -> None:
        """Draw a scene, whose working comes a moment later where it is None; no scene for a stop that is words."""
