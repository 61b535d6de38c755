"""See every number inside a transformer, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_transformer.engine.edits import Edit
    from tui_transformer.engine.trace import Trace
    from tui_transformer.model import Model

__version__ = "0.1.0"
__all__ = ["Edit", "Model", "Trace", "__version__"]

_HOMES = {
    "Edit": "tui_transformer.engine.edits",
    "Model": "tui_transformer.model",
    "Trace": "tui_transformer.engine.trace",
}


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first asked for: `--version` does not wait for NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
