"""Menus: letters behind a key, which show themselves, say why something cannot be, and need not be waited for."""

from __future__ import annotations

from itertools import product

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.main.enabled_actions import refused
from tui_transformer.explorer.shell.actions.main import ACTIONS, CARD
from tui_transformer.explorer.shell.dialog import CardScreen
from tui_transformer.explorer.shell.help_page import HelpScreen
from tui_transformer.explorer.shell.keys import IN_MENUS, KEYS, MENUS, in_menu
from tui_transformer.explorer.shell.menu import MenuScreen
from tui_transformer.explorer.shell.preferences import Preferences, read_preferences
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.tour_stop import backwards

DEFAULT = Preferences()


def menu_of(explorer) -> MenuScreen:
    return explorer.screen(MenuScreen)


async def test_every_menu_shows_its_entries_to_choose_by_letter_by_cursor_and_by_a_click_also_without_waiting():
    async with exploring(WIDE, preferences=DEFAULT) as explorer:
        await explorer.press("space")
        for size, menu in product((WIDE, NARROW, SMALL), MENUS.values()):
            await explorer.resize(*size)
            before = explorer.text
            await explorer.press(menu.key)
            assert [entry.letter for entry in menu_of(explorer)._entries] == list(menu.entries)
            assert f" {next(iter(menu.entries))}  " in explorer.text
            await explorer.press("Q", "escape")
            assert explorer.text == before, menu.key
        await explorer.resize(*MEDIUM)
        explorer.send("g", "h")
        await explorer.handled()
        await explorer.settled()
        assert "entropy" in explorer.text
        await explorer.press("escape", "g", "down", "up", "enter")
        assert "entropy" in explorer.text
        await explorer.press("escape", "m")
        await explorer.click(" ,  Settings")
        await explorer.shown("d_model")
        await explorer.press("escape")
        # what is typed behind the letter is typed into what the menu opens: at once, and at the menu
        for waits in (0, 1):
            keys = ["m", "b", *"mine"]
            await explorer.keys(*keys[:waits])
            explorer.send(*keys[waits:])
            await explorer.settled()
            assert explorer.focused_input.value == "mine"
            await explorer.press("escape")


async def test_what_cannot_be_is_there_with_its_reason_and_does_nothing(monkeypatch):
    async with exploring(WIDE, model="question", preferences=DEFAULT) as explorer:
        await explorer.press("r")
        assert "w  Write on, token by token, with the KV cache · an encoder writes nothing" in explorer.text
        await explorer.press("w")
        menu_of(explorer)
        assert explorer.text.count("an encoder writes nothing") == 2
        await explorer.leave()
        # what is broken is said to be broken, not to be missing
        before = explorer.session
        explorer.parts.port.change(before.with_breaks("no-scale"))
        await explorer.press("b")
        assert "Backward · something is broken on purpose: a b mends it" in explorer.text
        await explorer.press("escape")
        # a target that is found late takes no other sentence back
        late = []
        explorer.parts.port.change(before)
        monkeypatch.setattr(explorer.parts.port, "ask", lambda *asked: late.append(asked[2]))
        explorer.parts.editing.turn_around()
        explorer.parts.port.change(before.with_text("the cat"))
        late[0](backwards(before, lambda _: None))
        assert explorer.session.text == "the cat"
        assert not explorer.session.backward


async def test_what_is_refused_where_one_is_says_why():
    async with exploring(MEDIUM, model="attention", preferences=DEFAULT) as explorer:
        reasons = refused(explorer.session, explorer.stop, explorer.parts.explored.step)
        assert reasons["sentence.edit"] == "this model reads no sentence"
        assert all(reason and not reason.endswith(".") for reason in reasons.values())


async def test_letters_do_what_the_key_did_before():
    async with exploring(WIDE, model="question", preferences=DEFAULT, at="encoder.0.self_attention.scores") as explorer:
        await explorer.press(*"aa")
        assert explorer.session.edits
        await explorer.press("u", *"bb")
        assert explorer.session.backward
        await explorer.press("u", *"mh")
        assert explorer.view.hidden.special
        await explorer.go("encoder.0.self_attention.query")
        await explorer.press(*"gw")
        assert explorer.stop != "encoder.0.self_attention.query"


async def test_a_user_gives_a_menu_another_key_and_a_meaning_in_it_a_key_of_its_own():
    keys = Preferences(keys={"menu.look": "ctrl+k", "lens": "L"})
    async with exploring(WIDE, preferences=keys) as explorer:
        await explorer.press("space")
        line = explorer.text.splitlines()[-1]
        assert " ^k look at " in line
        await explorer.press("L")
        assert "lens" in explorer.text
        await explorer.press("escape", "ctrl+k")
        assert "Logit lens" in explorer.text
        # a word of the line of keys can be clicked
        await explorer.press("escape")
        await explorer.click("look at")
        menu_of(explorer)


@pytest.mark.parametrize("size", [MEDIUM, NARROW])
async def test_where_their_keys_stand_together_a_click_on_a_letter_opens_its_menu(size):
    async with exploring(size, model="question", preferences=DEFAULT) as explorer:
        await explorer.click("space")
        assert explorer.place[0] == 2  # the line that opened can be clicked as well
        for place, menu in enumerate(MENUS.values()):
            await explorer.click("g a r c b m menus", 2 * place)
            assert menu.title.capitalize() in explorer.text
            await explorer.leave()
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.click("←↑↓→", 2)
        assert explorer.position.place.row == 1
        await explorer.click("look inside")
        assert explorer.app.screen is not explorer.main


async def test_of_two_arrows_in_the_border_a_click_presses_the_one_under_it():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("o")
        lines = explorer.app.screen.query_one(LineList)
        for arrow, line in ((1, 1), (1, 2), (0, 1)):
            await explorer.click("↑↓ choose", arrow)
            assert lines.at[0] == line
        await explorer.leave()
        await explorer.open("settings")
        fields = explorer.app.screen.focus_chain
        for arrow, field in ((1, 1), (0, 0)):
            await explorer.click("↑↓ field", arrow)
            assert explorer.app.focused is fields[field]


async def test_the_keys_that_were_before_can_be_had_and_left_again_from_the_menu(tmp_path):
    async with exploring(WIDE, preferences=DEFAULT) as explorer:
        await explorer.press("m", "k", "down", "enter")
        await explorer.press("space", "H")
        assert "entropy" in explorer.text
        await explorer.press("escape", "g")
        assert explorer.app.screen is explorer.main
        assert " / sentence " in explorer.text.splitlines()[-1]
    file = tmp_path / "config.toml"
    file.write_text("classic = true\n[keys]\n'lens' = 'l'\n")
    read = read_preferences(file)
    assert read.keymap["heads.all"] == "H"
    assert read.keymap["lens"] == "l"
    file.write_text("classic = 'yes'\n")
    assert read_preferences(file).problems == (f"{file}: classic is true or false",)


async def test_the_card_names_every_key_and_explains_behind_enter():
    async with exploring((160, 50), model="question", preferences=DEFAULT) as explorer:
        await explorer.press("?")
        assert isinstance(explorer.app.screen, CardScreen)
        card = explorer.text
        for menu in MENUS.values():
            assert f"{menu.key} {menu.title} " in card
        for action in ACTIONS:
            if action.id in IN_MENUS:
                letter = in_menu(action.id)[-1]
                assert f"{letter} {action.short or action.title.partition(':')[0]}" in card, action
        for keys in CARD.values():
            for _, said in keys:
                assert said in card
        await explorer.press("enter")
        assert isinstance(explorer.app.screen, HelpScreen)
        await explorer.leave()


async def test_a_layer_further_is_the_same_step_there():
    async with exploring(NARROW, model="encoder", sizes={"layers": 3}, preferences=DEFAULT) as explorer:
        explorer.parts.navigation.go_to_stop("encoder.0.self_attention.scores")
        await explorer.press("}")
        assert explorer.stop == "encoder.1.self_attention.scores"
        await explorer.press("}", "{", "{")
        assert explorer.stop == "encoder.0.self_attention.scores"
        await explorer.press("{")
        assert explorer.stop == "embedding.output"


def test_no_letter_of_a_menu_has_two_meanings_and_every_one_is_an_action():
    actions = {action.id for action in ACTIONS}
    for menu in MENUS.values():
        assert set(menu.entries.values()) <= actions
        assert len(menu.title) <= 10
    assert set(MENUS) <= set(KEYS)


async def test_what_is_looked_for_is_gone_through_token_step_and_word_and_again_in_another_sentence():
    async with exploring(WIDE, model="question", preferences=DEFAULT) as explorer:
        await explorer.press("space", "n")
        assert explorer.messages[-1] == "nothing was looked for: / finds a token, a step, a word"
        await explorer.prompt("/", "nowhere")
        assert "is in no token, no step and no word of the vocabulary" in explorer.text
        await explorer.answer("map")
        assert (explorer.stop, explorer.position.place.row) == ("tokens", 7)
        await explorer.press("n")
        assert explorer.stop == "embedding.tokens.weight"
        await explorer.press("N")
        assert explorer.stop == "tokens"
        assert "token 7, map: 1 of 2" in explorer.messages[-1]
        explorer.parts.port.change(explorer.session.with_text("the map is old"))
        await explorer.press("n", "n")
        assert "token 1, map: 1 of 2" in explorer.messages[-1]
        explorer.parts.port.change(explorer.session.with_text("a cat"))
        await explorer.press("n")
        assert explorer.stop == "embedding.tokens.weight"
        await explorer.press("escape")
        assert explorer.stop == "tokens"
