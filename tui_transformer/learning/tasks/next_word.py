"""Next word: a decoder reads a text and predicts every word from those before it."""

from __future__ import annotations

from tui_transformer.learning.tasks.base import Task
from tui_transformer.learning.tasks.next_token import rows

TASK = Task("next-word", "decoder", "words", rows, whole=True)
