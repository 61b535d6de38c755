"""Models: configuration, layers written like the textbook, families, checkpoints."""

from tui_transformer.model.model import Model

__all__ = ["Model"]
