"""Actions of every screen: keys, lines of keys, palette and the checks of help are made from them."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.actions.dialogs import (
    CARD_PAGE,
    CHOICE,
    COMPARE,
    CUTS,
    DIALOG,
    FORM,
    HELP_PAGE,
    MENU,
    OPEN,
    PAGE,
    PATCH,
    PICK,
    PROMPT,
    READER,
    SOFTMAX,
)
from tui_transformer.explorer.shell.actions.main import (
    ACTIONS,
    CELL,
    INSIDE,
    PREDICT,
    SENTENCE,
    TEMPERATURE,
    TOUR,
    VOCABULARY,
    WHOLE,
)
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.keys import Action

SCREENS: Mapping[str, tuple[Action, ...]] = {
    "main": ACTIONS,
    **TOOLS,
    "cuts": CUTS,
    "softmax": SOFTMAX,
    "patch": PATCH,
    "dialog": DIALOG,
    "prompt": PROMPT,
    "pick": PICK,
    "menu": MENU,
    "compare": COMPARE,
    "open": OPEN,
    "form": FORM,
    "reader": READER,
    "help": HELP_PAGE,
    "card": CARD_PAGE,
    "page": PAGE,
    "choice": CHOICE,
    "tour": TOUR,
    "predict": PREDICT,
    "cell": CELL,
    "inside": INSIDE,
    "sentence": SENTENCE,
    "whole": WHOLE,
    "words": TEMPERATURE,
    "vocabulary": VOCABULARY,
}
"""Every screen, and every part of one that has keys of its own."""
