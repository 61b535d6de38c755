"""The command palette: it lists what can be done on the screen that is shown, also where it has no room."""

from __future__ import annotations

import asyncio
import re

import pytest
from driving import NARROW, WIDE, exploring
from textual.command import CommandList
from textual.css.query import NoMatches
from textual.widgets import Input
from textual.widgets.option_list import Option

from tui_transformer.explorer.guard.app import Commands
from tui_transformer.explorer.main.enabled_actions import refused_anywhere
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.keymap import without
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.session.session import TEXT


async def test_the_palette_runs_what_was_chosen_and_is_left_where_its_list_has_no_line():
    async with exploring(NARROW) as explorer:
        await explorer.prompt("ctrl+p", "Next step")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.until(lambda: explorer.place[0] == 2)
        # a key of the list waits for its place on the screen
        await explorer.keys("ctrl+p")
        await explorer.until(lambda: explorer.app.screen is not explorer.main)
        commands = explorer.app.screen.query_one(CommandList)
        commands.add_option(Option("one"))
        commands.highlighted, commands.styles.height = 0, 0
        await explorer.until(lambda: not commands.scrollable_content_region)
        commands._clear_caches()
        await explorer.keys("pageup", "pagedown", "end", "escape")
        assert explorer.app.screen is explorer.main
        # what was typed is not searched where it is closed
        palette = Commands()
        await explorer.app.push_screen(palette)
        typed = Input.Changed(palette.query_one(Input), "next")
        await palette.dismiss()
        await palette._on_message(typed)
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        # of the actions, and of the themes
        for name, size in (("command_palette", (5, 3)), ("change_theme", (1, 1))):
            await explorer.resize(*NARROW)
            await explorer.app.run_action(name)
            await explorer.until(lambda: explorer.app.screen is not explorer.main)
            await explorer.resize(*size)
            await explorer.keys("pageup", "pagedown", "end")
            assert explorer.app.screen is explorer.main
        await explorer.keys("ctrl+p", "pageup")
        assert explorer.app.screen is explorer.main
        assert any("palette needs a terminal of" in message for message in explorer.messages)


async def test_a_search_that_fails_while_the_palette_is_closed_ends_nothing():
    async def search() -> None:
        await asyncio.shield(asyncio.sleep(0.05))
        raise NoMatches("No nodes match 'CommandList'")

    async with exploring(NARROW) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.until(lambda: explorer.app.screen is not explorer.main)
        palette = explorer.app.screen
        await palette.dismiss()
        palette.run_worker(search(), name="late", exclusive=False)
        await asyncio.sleep(0.2)
        assert explorer.app.is_running
        assert explorer.app.failure is None
        await explorer.press("space")
        assert explorer.place[0] == 2


async def test_a_line_ends_with_its_key_which_finds_it_too_and_what_was_chosen_lately_is_first():
    async with exploring(NARROW, preferences=Preferences()) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.shown("Next step")
        line = next(line for line in explorer.text.splitlines() if "Next step" in line)
        assert line.split()[-1] == "space"
        await explorer.answer("Logit lens")
        await explorer.until(lambda: explorer.app.screen is not explorer.main and explorer.app.screen.settled)
        await explorer.press("escape", "ctrl+p")
        await explorer.shown("Logit lens")
        lines = [line for line in explorer.text.splitlines() if "Logit lens" in line or "Next step" in line]
        assert "Logit lens" in lines[0]
        assert lines[0].split()[-2:] == ["g", "l"]
        explorer.app.focused.value = "gh"
        await explorer.shown("All heads at once")


async def test_what_can_be_done_stands_in_groups_named_where_they_begin():
    async with exploring((120, 200), preferences=Preferences()) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.shown("Next step")
        lines = explorer.text.splitlines()
        names = ["go", "look", "change", "look at", "act", "run", "compare", "mine"]
        at = [next(y for y, line in enumerate(lines) if line.startswith(f"  {name} ")) for name in names]
        assert at == sorted(at)
        assert sum(line.startswith("  look at ") for line in lines) == 1
        assert "All heads" in "\n".join(lines[at[3] : at[4]])
        explorer.app.focused.value = "heads"
        await explorer.until(lambda: "Next step" not in explorer.text and "All heads at once" in explorer.text)
        assert next(line for line in explorer.text.splitlines() if "All heads at once" in line).startswith("  look at ")


async def test_the_lines_fit_the_terminal_that_becomes_another_and_the_cursor_stays():
    async with exploring(WIDE) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.shown("Next step", "Zoom: this pane")
        commands = explorer.app.screen.query_one(CommandList)
        await explorer.keys(*["down"] * 6)
        chosen = commands.highlighted_option.hit.text
        async for size in explorer.sizes((60, 20), (100, 30), (60, 20)):
            await explorer.until(
                lambda width=size[0]: max(each.prompt.cell_length for each in commands.options) <= width - 8
            )
            await explorer.handled()
            assert commands.highlighted_option.hit.text == chosen
            assert commands.virtual_size.height == commands.option_count


def commands(explorer):
    return {each.title: each for each in explorer.app.get_system_commands(explorer.app.screen)}


async def test_a_screen_has_its_own_actions_and_the_main_one_also_those_of_the_pane():
    async with exploring(NARROW) as explorer:
        left_out = refused_anywhere(explorer.session)
        there = [action.title for action in ACTIONS if action.id not in left_out]
        assert len(there) >= len(ACTIONS) - 4
        assert list(commands(explorer))[: len(there)] == there
        assert commands(explorer)["Next head"].help == "key: ]"
        await explorer.go(TEXT)
        await explorer.press("4")
        explorer.app.call_later(commands(explorer)["Lower temperature"].callback)
        await explorer.shown("T = 0.9")
        # a screen of its own
        for key, title in TITLES.items():
            await explorer.press(key)
            listed = commands(explorer)
            assert "Next step" not in listed
            assert title in listed
            explorer.app.call_later(listed["Back to the main screen"].callback)
            await explorer.until(lambda: explorer.app.screen is explorer.main)


WRITES = ("story", "dates")


@pytest.mark.parametrize("model", ["question", "encoder", *WRITES])
async def test_writing_is_offered_only_where_the_model_writes(model):
    async with exploring((200, 60), model=model, whole=None) as explorer:
        writes = model in WRITES
        listed = {each.help for each in explorer.app.get_system_commands(explorer.app.screen)}
        assert ("key: W" in listed) == writes
        await explorer.press("space")
        assert ("W write" in explorer.text.splitlines()[-1]) == writes
        await explorer.press("question_mark", "enter", "G")
        assert ("W: write on" in explorer.text) == writes
        assert "C: exercises" in explorer.text


async def test_what_a_model_never_does_is_in_neither_palette_nor_help():
    async with exploring(WIDE, model="attention") as explorer:
        left_out = refused_anywhere(explorer.session)
        assert {"sentence.edit", "vocabulary.open", "target.edit", "generate", "backward"} <= left_out.keys()
        assert not {action.title for action in ACTIONS if action.id in left_out} & set(commands(explorer))
        page = without(explorer.main.help_page, left_out)
        assert "edit the sentence" not in page
        assert "next step" in page


def test_a_line_of_help_goes_where_all_its_keys_do():
    undo, write, go = "- `{key:undo}`, `{key:redo}`: undo, redo", "- `{key:generate}`: write", "- `{key:go}`: go"
    page = "\n".join([undo, write, go, "`{key:generate}` or W: text"])
    assert without(page, {"undo", "generate", "go"}) == "\n".join([undo, "`{key:generate}` or W: text"])
    assert without(page, {"undo", "redo"}) == "\n".join([write, go, "`{key:generate}` or W: text"])


TITLES = {
    "H": "Order by the next measure",
    "K": "All heads, the layer, the head",
    "L": "What is shown here",
    "R": "Up to the next layer",
    "A": "Heads, layers, positions, neurons",
}


async def test_the_screen_that_writes_has_its_actions():
    async with exploring(NARROW, model="decoder") as explorer:
        await explorer.press("W")
        titles = list(dict.fromkeys(action.title for action in TOOLS["generate"] if action.id))
        assert list(commands(explorer))[: len(titles)] == titles
        explorer.app.call_later(commands(explorer)["Write the next token, or go on to it"].callback)
        await explorer.shown("1 written")


async def test_no_action_without_a_key_has_its_name_for_one():
    async with exploring(NARROW, model="question", preferences=Preferences()) as explorer:
        given = commands(explorer)
        assert given["Ablate this head (mean)"].help == given["Ablate this position (zero)"].help == "no key"
        assert given["Ablate this head (zero)"].help == "key: a a"
        assert not [each.help for each in given.values() if re.fullmatch(r"key: [\w-]+\.[\w.-]+", each.help)]
