"""Keys: declared once, one meaning each, and the same in bindings, help pages and README."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from tui_transformer import explorer as package
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.actions.main import ACTIONS, ALWAYS, FOCUSED, KEY_LINE
from tui_transformer.explorer.shell.actions.tools import OVERVIEW, TOOLS
from tui_transformer.explorer.shell.keymap import key_in, page_with_keys, with_keys, without
from tui_transformer.explorer.shell.keys import CLASSIC, IN_MENUS, KEYS, MEANINGS, MENUS, UNBOUND, Action, spelled
from tui_transformer.explorer.shell.preferences import RENAMED, Preferences, read_preferences
from tui_transformer.explorer.widgets.cursor import CURSOR_KEYS
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.guide.texts import Stop, help_text, tours

ROOT = Path(package.__file__).parents[2]

IN_INPUTS = {"input.complete"}
"""Keys while a text is typed, where letters are letters."""


def nodes() -> Iterator[type[DOMNode]]:
    """Every class of the explorer that takes keys."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__ == module.name:
                yield value


@cache
def declared() -> list[tuple[str, str, str]]:
    bindings = [(node, binding) for node in nodes() for binding in vars(node).get("BINDINGS", ())]
    assert all(isinstance(binding, Binding) and binding.id for _, binding in bindings)
    return [(node.__name__, key, binding.id) for node, binding in bindings for key in binding.key.split(",")]


def test_a_key_means_one_thing_on_a_screen_and_a_plain_one_of_the_main_screen_the_same_on_every_screen():
    plain = {key: each.id for each in ACTIONS for key in each.keys.split(",") if each.id not in MENUS}
    meanings = defaultdict(set)
    for node, key, meaning in declared():
        if meaning not in IN_INPUTS:
            meanings[node, key].add(meaning)
            assert plain.get(key, meaning) == meaning, node
    assert {where: several for where, several in meanings.items() if len(several) > 1} == {}


MOST_PLAIN = 28
"""Plain keys, where the arrows, hjkl, and the digits of the panes are one each."""


def test_the_main_screen_has_few_plain_keys_and_no_letter_has_two():
    keys = [key for each in ACTIONS if each.id not in MENUS for key in each.keys.split(",")]
    plain = [key for key in keys if not key.startswith(UNBOUND) and key not in ("f1", "shift+tab", "ctrl+z")]
    digits = [key for key in plain if key in "123456"]
    assert len(plain) - len(digits) + len(["digits", "arrows", "hjkl", "enter"]) <= MOST_PLAIN
    assert len(keys) == len(set(keys))
    # overviews leave by escape and q
    assert {action.keys for action in OVERVIEW if action.action == "leave"} == {"escape", "q"}
    assert "q" in {action.keys for action in ACTIONS if action.action == "app.quit"}


MOST_OF_A_TOOL = 3
"""Keys that a tool has alone."""


def test_a_tool_has_few_keys_that_no_other_screen_explains():
    common = {"find", "kind", "order", "reverse", "export", *CURSOR_KEYS, *(each.id for each in ACTIONS if each.direct)}
    for tool, actions in TOOLS.items():
        keys = {each.id for each in actions if each.id and not each.keys.startswith(UNBOUND)}
        assert len(keys - common) <= MOST_OF_A_TOOL, (tool, keys - common)


def test_what_was_a_key_before_there_were_menus_is_in_a_menu_or_a_plain_key_and_classic_keeps_it():
    classic = {**KEYS, **CLASSIC}
    for name in KEYS.keys() - {action.id for action in ACTIONS} - IN_MENUS.keys():
        assert classic[name]
    meanings = defaultdict(set)
    for name, keys in classic.items():
        for key in keys.split(","):
            meanings[key].add(name)
    assert {key: several for key, several in meanings.items() if len(several) > 1} == {"r": {"order", "terms.order"}}
    assert all(each.id in IN_MENUS or each.direct for each in ACTIONS)
    assert {name for name, keys in CLASSIC.items() if keys.startswith(UNBOUND)} == {
        *MENUS,
        "match.next",
        "match.back",
        "poster",
        "record",
        "hide",
    }


def test_every_key_is_in_the_table_and_every_screen_binds_what_is_declared_for_it():
    own = {(key, meaning) for meaning, keys in KEYS.items() for key in keys.split(",")}
    for screen, key, meaning in declared():
        if meaning not in IN_INPUTS and not key.startswith(UNBOUND):
            assert (key, meaning) in own, f"{key} of {screen} ({meaning})"
    bound = {(meaning, key) for _, key, meaning in declared()}
    for screen, actions in SCREENS.items():
        for action in actions:
            for key in action.keys.split(",") if action.id else ():
                assert (action.id, key) in bound, f"{key} of {screen}"
    # nothing in the table is without a screen
    assert {action.id for actions in SCREENS.values() for action in actions} >= MEANINGS


async def test_a_key_that_is_given_to_a_meaning_works_on_every_screen_and_is_shown():
    keys = {"order": "j", "layer.back": "less_than_sign", "find": "ctrl+e"}
    remapped = Preferences(keys=keys, classic=True)
    async with exploring(NARROW, model="encoder", sizes={"layers": 2}, preferences=remapped) as explorer:
        await explorer.press("R")
        assert "after layer 1" in explorer.text
        await explorer.press("<")
        assert "after layer 0" in explorer.text
        await explorer.press("escape", "H")
        assert " j order " in explorer.text
        await explorer.press("escape", "}", "}")
        layer = explorer.stop
        await explorer.press("<")
        assert explorer.stop != layer
        await explorer.press("v")
        assert "ctrl+e finds a word" in explorer.text


OWN = {
    "backward": "less_than_sign",
    "compare": "j",
    "cursor.choose": "ctrl+e",
    "cursor.left": "ctrl+a",
    "step.next": "f8",
    "tour": "grave_accent",
    "undo": "f9",
}


async def test_hints_and_lines_of_keys_name_the_keys_that_the_user_gave():
    async with exploring(
        WIDE, model="question", preferences=Preferences(keys=OWN, classic=True), whole=False
    ) as explorer:
        assert "`: a guided tour of this model" in explorer.text
        await explorer.press("f8", "f8")
        line = explorer.text.splitlines()[-1]
        assert line.startswith(" ^e look inside  ^a ↑ ↓ → cell ")
        await explorer.press("e")
        assert "f9 takes it back" in explorer.text
        await explorer.press("escape", "backspace", "backspace", "p", "z", "D")
        assert explorer.messages[-3:] == [
            "there is nothing to predict here: go to a step with f8",
            "there is nothing beside: < shows gradients, j compares",
            "nothing is compared: j compares",
        ]
        explorer.parts.tour.follow(Lecture("own", "", (Stop("a", "A", "{key:undo} goes back", "tokens"),)))
        await explorer.shown("f9 goes back")


KEYS_BEFORE_VERBS = re.compile(
    r"(?<![\w{.'-])(space|enter|esc|tab|backspace|ctrl\+\w|[a-zA-Z#/!$%&~?]) "
    r"(shows|goes|opens|compares|ends|asks|brings|takes|chooses|mends|undoes|edits|patches|keeps|sets|comes|begins|lists)\b"
)


def test_no_text_of_the_explorer_names_a_key_that_the_user_may_have_changed():
    literal = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in Path(package.__file__).parent.rglob("*.py")
        for text in texts_in(path)
        if KEYS_BEFORE_VERBS.search(text)
    }
    assert literal == set()


KEYS_OF_TOURS = re.compile(rf"\b[Tt]he key .(?![\w{{])|(?:^|[.;:,] )[A-Z/#] [a-z]+s\b|{KEYS_BEFORE_VERBS.pattern}")


@pytest.mark.parametrize("name", tours())
def test_tours_name_the_keys_that_are_in_use(name):
    asked = lecture(name)
    assert not [stop.text for stop in asked.stops if KEYS_OF_TOURS.search(re.sub(r"\{key:[a-z.-]+\}", "__", stop.text))]
    own = {meaning: f"f{number}" for number, meaning in enumerate(sorted(MEANINGS), 2)}
    for stop, usual, remapped in zip(asked.stops, with_keys(asked, {}).stops, with_keys(asked, own).stops, strict=True):
        named = re.findall(r"\{key:([a-z.-]+)\}", stop.text)
        assert "{" not in usual.text + remapped.text
        assert [key for key in re.findall(r"\bf\d+\b", remapped.text) if key in own.values()] == [own[n] for n in named]
        assert all(key_in({}, meaning) in usual.text for meaning in named)


def test_a_lecture_without_named_keys_is_as_it_was_and_one_that_names_no_key_is_refused():
    told = Lecture("own", "", (Stop("a", "{x}", "the set {1, 2}, {undo} and {key:}", "tokens", notes="f{key :u}"),))
    assert with_keys(told, {}) == told
    wrong = Lecture("own", "", (Stop("first", "A", "{key:ablate.haed} does", "tokens"),))
    with pytest.raises(
        InputError, match=r"own: \[first\] \{key:ablate.haed\} is no key .*: use a name such as ablate.head"
    ):
        with_keys(wrong, {})


def texts_in(path: Path) -> Iterator[str]:
    """The strings of a file, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def test_a_page_of_help_names_the_keys_that_are_in_use():
    page = "- `{key:step.next}`, `{key:arcs}`: the next step\n- `{key:undo}`: back; √`x`"
    keymap = {"step.next": "ctrl+n", "no.such": "q"}
    assert page_with_keys(page, keymap, direct=True) == "- `ctrl+n`, `a`: the next step\n- `u`: back; √`x`"
    assert page_with_keys(page, {}, direct=False) == "- `space`, `g a`: the next step\n- `u`: back; √`x`"
    assert page_with_keys(page, {"menu.look": "ctrl+k"}, direct=False).startswith("- `space`, `ctrl+k a`")
    assert page_with_keys(page, CLASSIC, direct=False).startswith("- `space`, `Q`")
    assert without(page, {"step.next", "arcs"}) == "- `{key:undo}`: back; √`x`"
    assert without(page, {"step.next"}) == page
    # the classic keys have none for it
    page = "- `{key:hide}`: hide\n- `{key:undo}`: back, or `{key:hide}`"
    assert page_with_keys(page, CLASSIC, direct=True) == "- `u`: back, or `ctrl+p`"


def test_a_file_gives_keys_to_actions_also_by_names_of_before_and_says_which_there_are_not(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[keys]\n"beside" = "j"\n')
    assert read_preferences(file).keys["overlay"] == "j"
    file.write_text('[keys]\n"beside" = "j"\n"overlay" = "J"\n')
    assert read_preferences(file).keys["overlay"] == "J"
    assert set(RENAMED.values()) <= MEANINGS
    # names and keys that there are not
    file.write_text('[keys]\nundoo = "x"\nopen = "retrun,x"\nhelp = ""\n"generate.top-k" = "k"\n')
    read = read_preferences(file)
    assert read.keys == {"open": "x", "generate.top-k": "k"}
    said = [problem.removeprefix(f"{file}: [keys] ") for problem in read.problems]
    assert said[0] == "'undoo' is no name of a key: use a name such as undo"
    assert [each.partition(":")[0] for each in said[1:]] == ["open = 'retrun,x' is no key", "help = '' is no key"]


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (",", "comma"),
        ("esc, Ctrl+X", "escape,ctrl+x"),
        ("%,shift+f,←,F5,+", "percent_sign,F,left,f5,plus"),
        ("slash,ctrl+pageup,é", "slash,ctrl+pageup,é"),
    ],
)
def test_keys_in_a_file_may_be_written_as_help_writes_them(tmp_path, written, named):
    file = tmp_path / "config.toml"
    file.write_text(f'[keys]\n"open" = "{written}"\n')
    assert (read_preferences(file).keys, read_preferences(file).problems) == ({"open": named}, ())


# What is written about keys


MOVES = {*"hjkl←→↑↓G+-0123456?q", "arrows", "enter", "home", "end", "ctrl+p", "esc", "tab", "shift+tab", "F1"}
"""Keys of the cursor in every widget, of panes, the palette's, and those that every screen has."""

PAGES = {
    "general": ("main",),
    "ablate": ("ablation", "overview", "main"),
    "all-heads": ("all heads", "overview"),
    "cell": ("cell",),
    "checkpoints": ("checkpoints", "overview"),
    "generate": ("generate",),
    "lens": ("lens", "overview"),
    "terms": ("terms", "overview"),
    "links": ("links", "overview"),
    "matrix": ("main",),
    "patch": ("main",),
    "poster": ("poster", "overview"),
    "rollout": ("rollout", "overview"),
    "exercises": ("exercises", "overview"),
    "train": ("train",),
    "vocabulary": ("vocabulary", "main"),
}
"""The screens whose keys a page of help names."""


def said(lines: str) -> set[str]:
    """The keys that lines of help name: before the colon of an item, or in the first column of a table."""
    items = re.findall(r"^- ((?:`[^`]+`(?:, | or | to | | and )?)+)[^`\n]*:", lines, re.MULTILINE)
    cells = re.findall(r"^\| ([^|]+) \|", lines, re.MULTILINE)
    keys = {key for item in items for key in re.findall(r"`([^`]+)`", item)}
    words = ((word.rstrip(",") or word).replace("−", "-") for cell in cells for word in cell.split())
    return keys | {word for word in words if word not in ("key", "and", "or")}


def named(text: str) -> set[str]:
    """The meanings whose keys a page of help names."""
    return set(re.findall(r"\{key:([^}]+)\}", text))


def test_help_names_keys_that_there_are_and_no_key_that_could_be_another():
    for page, screens in PAGES.items():
        assert named(help_text(page)) <= {action.id for name in (*screens, "main") for action in SCREENS[name]}, page
        written = re.sub(r"\{key:[^}]+\}", "", help_text(page))
        assert {key for key in said(written) if key.strip()} <= MOVES, page


@pytest.mark.parametrize("page", ["all-heads", "links", "rollout", "ablate", "checkpoints", "train", "generate"])
def test_help_names_all_keys_of_a_screen(page):
    text, name = help_text(page), PAGES[page][0]
    for action in SCREENS[name]:
        keys = [spelled(key) for key in action.keys.split(",")] if action.id in KEYS and action.direct else []
        if action.id not in ("theme", "suspend", "help", "quit", "pane.back"):
            there = action.id in named(text) or any(key in said(text) or f"`{key}`" in text for key in keys)
            assert not keys or there, action


def test_the_keys_of_the_readme_are_keys_of_the_main_screen():
    readme = (ROOT / "README.md").read_text()
    table = readme[readme.index("| key | |") :].split("\n\n")[0].splitlines()[2:]
    keys = {key for row in table for key in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
    own = {spelled(key) for action in SCREENS["main"] for key in action.keys.split(",")}
    assert len(keys) == len(table) + 2
    assert keys <= own | MOVES


ARROWS = "←↑↓→"


def shown_keys(action: Action) -> set[str]:
    """The keys that a line of keys writes for an action, as help writes them."""
    text = re.sub(r"\^(?=[a-z])", "ctrl+", action.shown)
    return {c for c in text if c in ARROWS} | set(re.sub(f"[{ARROWS}]", " ", text).split())


def test_a_line_of_keys_shows_keys_that_do_what_it_says_and_have_a_word():
    every = {spelled(key) for keys in KEYS.values() for key in keys.split(",")}
    letters = {letter for menu in MENUS.values() for letter in menu.entries} | {"letter,"}
    for screen, actions in {**SCREENS, **FOCUSED}.items():
        for action in filter(lambda each: each.shown and each.direct, actions):
            same = [each for each in actions if each.id and each.action.split("(")[0] == action.action.split("(")[0]]
            does = {spelled(key) for each in same for key in each.keys.split(",")}
            assert shown_keys(action) <= every | letters, (screen, action)
            assert not action.id or shown_keys(action) & does, (screen, action)
    named = {action.id: action for action in ACTIONS}
    for name in (*KEY_LINE, *ALWAYS):
        assert named[name].short
        assert named[name].shown or name in IN_MENUS


async def test_the_keys_of_the_pane_come_first_then_the_most_useful():
    async with exploring(WIDE) as explorer:
        async for size in explorer.sizes(WIDE, MEDIUM, NARROW, SMALL):
            await explorer.press("left", "space")
            line = explorer.text.splitlines()[-1]
            assert line.startswith(" enter look inside  ")
            assert line.rstrip().endswith("? help  q quit")
            if size is not SMALL:
                assert " space next  " in line


async def test_keys_that_are_kept_are_those_that_textual_works_out():
    def keys(chain) -> list[dict[str, list[str]]]:
        return [{key: [each.action for each in of] for key, of in map_.key_to_bindings.items()} for _, map_ in chain]

    async with exploring(WIDE, model="question", preferences=Preferences(keys=OWN, classic=True)) as explorer:
        work_out = vars(Screen)["_binding_chain"].fget
        for press in ("1", "2", "4", "5", "f8", "slash", "a", "escape"):
            await explorer.keys(press)
            screen = explorer.app.screen
            for _ in range(2):
                assert keys(screen._binding_chain) == keys(work_out(screen))
        explorer.app.set_keymap({"step.next": "f7"})
        assert keys(explorer.main._binding_chain) == keys(work_out(explorer.main))
