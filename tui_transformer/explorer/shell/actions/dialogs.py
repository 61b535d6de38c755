"""Actions that several screens have, and those of dialogs, forms and pages that are read."""

from __future__ import annotations

from tui_transformer.explorer.shell.keys import Action

ACROSS, UP_DOWN = "cursor.left cursor.right", "cursor.up cursor.down"
EVERY_WAY = "cursor.left cursor.up cursor.down cursor.right"
ZOOM, CHOOSE = "cursor.wider cursor.narrower", "cursor.choose"
HEAD, LAYER = "head.back head.next", "layer.back layer.next"
"""Meanings whose keys are shown together, in their order."""

HELP = Action("help", "app.help", "What is shown here", "help", "?")
LEAVE = Action("back", "leave", "Leave without a change", "leave", "esc")

SCROLL_SHOWN = Action("", "", "Scroll", "scroll", "↑↓", UP_DOWN)
DIALOG = (LEAVE,)
PROMPT = (
    Action("", "", "Complete the word", "complete", of="tab"),
    Action("", "", "What was given before", "lately", "↑↓", "up down"),
    Action("", "", "Take what is typed", "ok", of="enter"),
    LEAVE,
)
PICK = (
    Action("", "", "Move", "move", "↑↓", UP_DOWN),
    Action("", "", "Pick what is under the cursor", "pick", of=CHOOSE),
    Action("back", "leave", "Leave without a change", "stay", "esc"),
)
MENU = (
    Action("cursor.up", "move(-1)", "The entry before", "move", "↑↓", UP_DOWN),
    Action("cursor.down", "move(1)", "The next entry"),
    Action("cursor.choose", "choose", "Choose the entry", "choose", "letter, enter"),
    Action("back", "leave", "Close the menu", "close", "esc"),
)
COMPARE = (Action("", "", "Compare with what is under the cursor", "compare", of=CHOOSE), LEAVE)
OPEN = (
    Action("", "", "Choose in the list", "choose", "↑↓", "up down"),
    Action("", "", "Open what is chosen, or the path that is typed", "open", of="enter"),
    LEAVE,
)
FORM = (
    Action("cursor.up", "app.focus_previous", "The field before", "field", "↑↓", UP_DOWN),
    Action("cursor.down", "app.focus_next", "The next field"),
    Action("", "", "Choose a value", "choose", "←→", ACROSS),
    Action("save", "submit", "Take over what is in the form", "apply", "ctrl+s"),
    Action("cursor.choose", "submit", "Take over what is in the form"),
    LEAVE,
)
PATCH = (
    Action("", "", "Choose the part", "part", "tab ←→", "tab cursor.left cursor.right"),
    Action("help", "app.help", "What is shown here", "help", "F1"),
    Action("cursor.choose", "submit", "Patch", "patch"),
    Action("cursor.up", "app.focus_previous", "The field before"),
    Action("cursor.down", "app.focus_next", "The next field"),
    Action("save", "submit", "Patch"),
    LEAVE,
)
CLOSING = (
    Action("quit", "leave", "Close the text"),
    Action("cursor.choose", "leave", "Close the text"),
    Action("back", "leave", "Close the text", "close", "esc"),
)
READER = (SCROLL_SHOWN, *CLOSING)
CUTS = (Action("vocabulary.open", "add", "Add another vocabulary", "add a vocabulary"), *CLOSING)
HELP_PAGE = (Action("help", "leave", "Close the help"), SCROLL_SHOWN, *CLOSING)
CARD_PAGE = (
    Action("help", "leave", "Close the card"),
    Action("cursor.choose", "explain", "Explain what is focused, step by step", "explain", "enter"),
    SCROLL_SHOWN,
    Action("quit", "leave", "Close the card"),
    Action("back", "leave", "Close the card", "close", "esc"),
)
SOFTMAX = (
    Action("cursor.wider", "raise(1)", "Raise all scores by 10", "raise, lower the scores", of=ZOOM),
    Action("cursor.narrower", "raise(-1)", "Lower all scores by 10"),
    Action("breaks", "break", "Raise the scores until the naive softmax breaks, and back", "break it, mend it"),
    *CLOSING,
)
SCORE = (
    Action("cursor.wider", "warmer(1)", "Higher temperature", "temperature", of=ZOOM),
    Action("cursor.narrower", "warmer(-1)", "Lower temperature"),
    *READER,
)
PAGE = (
    Action("cursor.up", "scroll('up')", "A line up"),
    Action("cursor.down", "scroll('down')", "A line down"),
    *(Action(f"cursor.{size}-up", "scroll('page_up')", "A page up") for size in ("page", "half")),
    *(Action(f"cursor.{size}-down", "scroll('page_down')", "A page down") for size in ("page", "half")),
    Action("step.next", "scroll('page_down')", "The next page"),
    *(Action(f"cursor.{first}", "scroll('home')", "To the top") for first in ("top", "row-start")),
    *(Action(f"cursor.{last}", "scroll('end')", "To the bottom") for last in ("bottom", "row-end")),
)
CHOICE = (
    Action("cursor.right", "turn(1)", "The next value"),
    Action("cursor.left", "turn(-1)", "The value before"),
    Action("step.next", "turn(1)", "The next value"),
)
