"""Actions of every screen: keys, lines of keys, palette and the checks of help are made from them."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.actions import dialogs, main
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.keys import Action

SCREENS: Mapping[str, tuple[Action, ...]] = {
    "main": main.ACTIONS,
    **TOOLS,
    "cuts": dialogs.CUTS,
    "softmax": dialogs.SOFTMAX,
    "patch": dialogs.PATCH,
    "dialog": dialogs.DIALOG,
    "prompt": dialogs.PROMPT,
    "pick": dialogs.PICK,
    "menu": dialogs.MENU,
    "compare": dialogs.COMPARE,
    "open": dialogs.OPEN,
    "form": dialogs.FORM,
    "reader": dialogs.READER,
    "help": dialogs.HELP_PAGE,
    "card": dialogs.CARD_PAGE,
    "page": dialogs.PAGE,
    "choice": dialogs.CHOICE,
    "tour": main.TOUR,
    "predict": main.PREDICT,
    "cell": main.CELL,
    "inside": main.INSIDE,
    "sentence": main.SENTENCE,
    "whole": main.WHOLE,
    "words": main.TEMPERATURE,
    "vocabulary": main.VOCABULARY,
}
"""Every screen, and every part of one that has keys of its own."""
