"""Keys in use, those of the program or of the user, and where they are written: hints, line of keys, palette."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.style import Style

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.main import ACTIONS, CARD
from tui_transformer.explorer.shell.keys import IN_MENUS, KEYS, MEANINGS, MENUS, UNBOUND, Action, spelled
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.guide.lecture import Lecture
from tui_transformer.records import replace
from tui_transformer.text.display import cells

_MEANING, _KEY = re.compile(r"\{([a-z.-]+)\}"), re.compile(r"\{key:([^{}\s]+)\}")

_LISTED = re.compile(r"- (?:`?\{key:[^{}\s]+\}`?(?:, | or | to | and | )?)+:")
"""The beginning of a line of help, with its keys."""


def _split(keys: str) -> list[str]:
    """The keys that a table or a user gives to a meaning; none where it is to have no key."""
    return [key.strip() for key in keys.split(",") if not key.startswith(UNBOUND)]


def in_use(actions: Sequence[Action], app: App[Any]) -> Sequence[Action]:
    """Actions as the line of keys writes them: with the first of the keys that the user gave them, if they have one."""
    keymap = keymap_of(app)
    written = [(each, keys) for each in actions if (keys := _shown(each, keymap)) or not each.direct]
    return [each if each.shown == keys else replace(each, shown=keys) for each, keys in written]


def _shown(action: Action, keymap: Mapping[str, str]) -> str:
    meanings = action.of.split() or [action.id]
    if keymap.keys().isdisjoint(meanings):
        return action.shown
    return " ".join(keys[0][0] for meaning in meanings if (keys := _written(meaning, keymap)))


def _written(meaning: str, keymap: Mapping[str, str]) -> list[tuple[str, str]]:
    """The keys of a meaning as the line of keys writes them, each with its name; what is no meaning is a key itself."""
    known = meaning in MEANINGS or meaning in keymap
    keys = _split(keymap.get(meaning) or KEYS.get(meaning, UNBOUND)) if known else [meaning]
    return [(spelled(key).replace("ctrl+", "^"), key) for key in keys]


def keys_of(app: App[Any], meanings: Sequence[str]) -> Iterator[str]:
    """The keys of these meanings, those of the user where there are any; `step.` stands for all of this beginning."""
    keymap, groups = keymap_of(app), tuple(each for each in meanings if each.endswith("."))
    for name in MEANINGS:
        if name in meanings or name.startswith(groups):
            keys = keymap.get(name) or ("" if name in IN_MENUS else KEYS[name])
            yield from (key.strip() for key in keys.split(",") if key)


def first_key(app: App[Any], meaning: str) -> str:
    """The first key of a meaning, as it is written on the screen: `u`, or `g h` in a menu."""
    return key_in(keymap_of(app), meaning)


def key_in(keymap: Mapping[str, str], meaning: str, *, direct: bool = False) -> str:
    """The first key that a keymap gives to a meaning; `direct`: as a tool has it, which has no menus."""
    given = keymap.get(meaning) or (KEYS.get(meaning, "") if direct or meaning not in IN_MENUS else "")
    if given and not given.startswith(UNBOUND):
        return spelled(given.split(",")[0].strip())
    if meaning not in IN_MENUS:
        return "" if meaning in KEYS else spelled(meaning)
    menu, letter = IN_MENUS[meaning]
    key = key_in(keymap, menu)
    return f"{key} {letter}" if key else ""


def hint(app: App[Any], text: str, *, direct: bool = False) -> str:
    """A text that names keys by their meanings: `{undo} takes it back` is `u takes it back`.

    `direct`: the keys of a tool, which has no menus.
    """
    return hint_in(keymap_of(app), text, direct=direct)


def hint_in(keymap: Mapping[str, str], text: str, *, direct: bool = False) -> str:
    """The same with the keys that a user gave to meanings."""

    def key(match: re.Match[str]) -> str:
        return key_in(keymap, match[1], direct=direct) if match[1] in MEANINGS else match[0]

    return _MEANING.sub(key, text)


def with_keys(told: Lecture, keymap: Mapping[str, str]) -> Lecture:
    """A tour in whose texts `{key:undo}` is the key for that, of the user's or the program's.

    Raises:
        InputError: A text names a key that there is not.
    """
    stops = []
    for stop in told.stops:
        fill = partial(_filled, keymap=keymap, where=f"{told.path or told.name}: [{stop.name}]")
        stops.append(replace(stop, title=fill(stop.title), text=fill(stop.text), notes=fill(stop.notes)))
    return replace(told, stops=tuple(stops))


def page_with_keys(page: str, keymap: Mapping[str, str], *, direct: bool) -> str:
    """A page of help in which `{key:undo}` is the key for that; `direct`: of a tool, which has no menus."""
    none = [name for name in _KEY.findall(page) if name in MEANINGS and not key_in(keymap, name, direct=direct)]
    return _filled(without(page, none), keymap=keymap, where="help:", direct=direct)


def _filled(text: str, *, keymap: Mapping[str, str], where: str, direct: bool = False) -> str:
    def key(named: re.Match[str]) -> str:
        if named[1] not in MEANINGS:
            near = ", ".join(get_close_matches(named[1], MEANINGS, 3, 0.3)) or "undo"
            raise InputError(f"{where} {named[0][:60]} is no key of the program: use a name such as {near}")
        return key_in(keymap, named[1], direct=direct) or "ctrl+p"  # which has everything

    return _KEY.sub(key, text)


def without(page: str, meanings: Collection[str]) -> str:
    """A page of help without the lines of a list about keys of these meanings alone: "- `{key:generate}`: write"."""
    lines = ((line, _LISTED.match(line)) for line in page.split("\n"))
    return "\n".join(line for line, keys in lines if keys is None or not set(_KEY.findall(keys[0])) <= set(meanings))


def keymap_of(app: App[Any]) -> Mapping[str, str]:
    """The keys that the user gave to actions, by the names of those; none in an app that has no such keys."""
    return getattr(app, "keymap", {})


def key_line(actions: Sequence[Action], app: App[Any], width: int, always: int = 2) -> Content:
    """The actions that have a word, each with its key, as many as fit; so many of the last ones in any case."""
    given = tuple(keymap_of(app).items())
    words = [word for action in actions if (word := _word(action, given)) is not None]
    room, chosen = width - 1 - sum(word.cell_length for word in words[-always:]), list[Content]()
    for word in words[:-always]:
        if word.cell_length <= room:
            room -= word.cell_length
            chosen.append(word)
    return Content("").join((*chosen, *words[-always:]))


@lru_cache(1 << 10)
def _word(action: Action, given: tuple[tuple[str, str], ...]) -> Content | None:
    """An action's key and word; a click does what the key does, and of several keys the one that is clicked.

    None where it has no word, or no key in the keymap that is given.
    """
    keymap = dict(given)
    key, does = _shown(action, keymap), action.action
    if not (key and action.short):
        return None
    one = " " not in key and " " not in action.of
    every = (each for meaning in action.of.split() or [action.id] for each in _written(meaning, keymap))
    keys = () if does and one else tuple(each for each in every if each[0] in key)  # that clicks tell apart, or type
    said = Content.assemble(" ", (key, "bold $accent"), (f" {action.short} ", "$foreground 70%"))
    if does or len(keys) == 1:
        name = does if "." in does.partition("(")[0] else f"screen.{does}"
        said = said.stylize(Style.from_meta({CLICKED: name if does else press(keys[0][1])}))
    if len(keys) > 1:
        names = dict(keys)
        for each in re.finditer("|".join(map(re.escape, sorted(names, key=len, reverse=True))), key):
            said = said.stylize(Style.from_meta({CLICKED: press(names[each[0]])}), each.start() + 1, each.end() + 1)
    return said


def press(key: str) -> str:
    """What runs where a key is clicked that does what no action of the screen does."""
    return f"app.press({key!r})"


CLICKED = "clicked"
"""What a screen runs where a word of its line of keys is clicked; `@click` would be drawn as a link."""


# The palette: one line an action, in groups, with its key at the right, and the recent ones first


KEY, NO_KEY = "key: ", "no key"
"""How the help of a command begins that has a key, and what it is of one that has none."""

WIDEST, BESIDE = 110, 8
"""Columns of a line at most, and those of the terminal that it leaves to the palette's border and bar."""

BEFORE_OTHERS = 0.05
"""What a command that was chosen lately is ahead of others that fit as well."""

GROUP, LATELY, ROOMY = 10, "lately", 60
"""Columns of the name of a group, that of the first, and columns of a line from which on it is beside it."""

_MEANINGS: Mapping[str, Sequence[str]] = {
    **{title.casefold(): " ".join(meanings for meanings, _ in keys).split() for title, keys in CARD.items()},
    **{menu.title: tuple(menu.entries.values()) for menu in MENUS.values()},
}
_GROUPS: Mapping[str, str] = {
    **{action.title: name for name, ids in _MEANINGS.items() for action in ACTIONS if action.id in ids},
    "Step": "steps",
    "Tour:": "tours",
    "Open": "models",
    "Setting:": "settings",
}
"""The group of a command, by its title or the first word of it."""

_ORDER = {name: place for place, name in enumerate(dict.fromkeys((LATELY, *_MEANINGS, "", *_GROUPS.values())))}


def commands_of(
    screen: Screen[Any], display: Callable[[Binding], str], keymap: Mapping[str, str], left_out: Collection[str]
) -> Iterator[SystemCommand]:
    """A command for every action but those that are of no use now.

    Args:
        screen: What is shown.
        display: Writes a key as the key line does.
        keymap: The keys of the user.
        left_out: The meanings that are of no use.
    """
    said: set[str] = set()
    nodes = (screen,) if screen.focused is None else (screen, screen.focused)
    menus = any(binding.id in MENUS for binding in _bindings(screen))
    for node in nodes:
        for binding in _bindings(node):
            if binding.tooltip not in said and binding.id not in left_out:
                said.add(binding.tooltip)
                given = _split(keymap.get(binding.id or "") or binding.key)
                keys = " ".join(display(binding.with_key(key)) for key in given)
                keys = keys or (key_in(keymap, str(binding.id)) if menus and binding.id in IN_MENUS else "")
                told = f"{KEY}{keys}" if keys else NO_KEY
                yield SystemCommand(binding.tooltip, told, partial(node.run_action, binding.action))


def _bindings(node: DOMNode) -> Iterator[Binding]:
    """Those of the program: each has a name, by which its keys can be changed, and says what it does."""
    for kind in type(node).__mro__:
        for binding in vars(kind).get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id and binding.tooltip:
                yield binding


class CommandLines(Provider):
    """Everything that can be done on the screen in front."""

    _lately: tuple[str, ...] = ()

    async def startup(self) -> None:
        """Read what was chosen lately once, not at every letter."""
        self._lately = recent("commands")

    async def discover(self) -> Hits:
        """All of it: what was chosen lately first, then in groups, each named where it begins."""
        lately, before = self._lately, ""

        def place(command: SystemCommand) -> tuple[int, int]:
            recent = lately.index(command.title) if command.title in lately else len(lately)
            return _ORDER[self._group(command)], recent

        for command in sorted(self.app.get_system_commands(self.screen), key=place):
            group, title = self._group(command), Content(command.title)
            line = self._line(title, command.help, group * (group != before))
            yield DiscoveryHit(line, partial(self._run, command), text=command.title)
            before = group

    async def search(self, query: str) -> Hits:
        """What fits the letters that are typed, in its title or as its key."""
        matcher = self.matcher(query)
        for command in self.app.get_system_commands(self.screen):
            is_key = command.help.startswith(KEY) and command.help.removeprefix(KEY).replace(" ", "") == query
            words = query.casefold().strip() in command.title.casefold()
            fits = matcher.match(command.title) + 10 * words + 20 * is_key  # letters far apart fit, too, but come last
            if fits > 0:
                fits += BEFORE_OTHERS * (command.title in self._lately)
                line = self._line(matcher.highlight(command.title), command.help, self._group(command))
                yield Hit(fits, line, partial(self._run, command), text=command.title)

    def _group(self, command: SystemCommand) -> str:
        if command.title in self._lately:
            return LATELY
        return _GROUPS.get(command.title) or _GROUPS.get(command.title.partition(" ")[0], "")

    def _run(self, command: SystemCommand) -> object:
        remember("commands", command.title)
        return command.callback()

    def _line(self, title: Content, told: str, group: str) -> Content:
        """A group, a title, and at the right its key, or what is said of it as far as there is room."""
        width, named = min(self.app.size.width - BESIDE, WIDEST), Content()
        if width >= ROOMY:
            width, named = width - GROUP, Content.styled(group.ljust(GROUP), "$foreground 60%")
        if told.startswith(KEY):
            key = told.removeprefix(KEY)
            room = width - cells(key)
            padded = title.truncate(max(room - 1, 1), ellipsis=True).pad_right(max(room - title.cell_length, 1))
            return named + padded + Content.styled(key, "bold $accent")
        room = width - title.cell_length - 2
        if told == NO_KEY or room < len(NO_KEY):
            return named + title.truncate(width, ellipsis=True)
        return named + title + Content("  ") + Content.styled(told, "$foreground 60%").truncate(room, ellipsis=True)
