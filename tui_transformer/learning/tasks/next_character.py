"""Next character: a decoder reads a text and predicts every character, line breaks among them, from those before it."""

from __future__ import annotations

from tui_transformer.learning.tasks.base import Task
from tui_transformer.learning.tasks.next_token import rows

TASK = Task("next-character", "decoder", "characters", rows, whole=True)
