"""The line of keys: the most useful that fit, help and quit always."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.shell.actions import ACTIONS, ALWAYS, KEY_LINE


def test_every_key_of_the_line_has_a_word():
    named = {action.id: action for action in ACTIONS}
    for name in (*KEY_LINE, *ALWAYS):
        assert named[name].short
        assert named[name].shown


@pytest.mark.parametrize(
    ("size", "last"), [(WIDE, "e edit"), (MEDIUM, "0 whole"), (NARROW, "/ sentence"), (SMALL, "[ ] head")]
)
async def test_the_most_useful_keys_come_first(size, last):
    async with exploring(size) as explorer:
        await explorer.press("left")
        line = explorer.text.splitlines()[-1]
        assert line.startswith(" space next  ")
        assert line.rstrip().endswith(f"{last}  ? help  q quit")
