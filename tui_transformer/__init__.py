"""See every number inside a transformer, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_transformer.engine.edits import Ablate, Edit, Patch
    from tui_transformer.engine.trace import Trace
    from tui_transformer.model import Model

__version__ = "0.1.0"
__all__ = ["Ablate", "Edit", "Model", "Patch", "Trace", "__version__"]

_HOMES = {
    "Ablate": "tui_transformer.engine.edits",
    "Edit": "tui_transformer.engine.edits",
    "Model": "tui_transformer.model",
    "Patch": "tui_transformer.engine.edits",
    "Trace": "tui_transformer.engine.trace",
}


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first asked for: `--version` does not wait for NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
