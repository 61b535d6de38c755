"""The line of keys: the most useful that fit, help and quit always."""

from __future__ import annotations

from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.shell.actions.main import ACTIONS, ALWAYS, KEY_LINE
from tui_transformer.explorer.shell.keys import IN_MENUS


def test_every_key_of_the_line_has_a_word():
    named = {action.id: action for action in ACTIONS}
    for name in (*KEY_LINE, *ALWAYS):
        assert named[name].short
        assert named[name].shown or name in IN_MENUS


async def test_the_keys_of_the_pane_come_first_then_the_most_useful():
    async with exploring(WIDE) as explorer:
        for size in (WIDE, MEDIUM, NARROW, SMALL):
            await explorer.resize(*size)
            await explorer.press("left", "space")
            line = explorer.text.splitlines()[-1]
            assert line.startswith(" enter look inside  ")
            assert line.rstrip().endswith("? help  q quit")
            if size is not SMALL:
                assert " space next  " in line
