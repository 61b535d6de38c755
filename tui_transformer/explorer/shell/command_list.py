"""The lines of the command palette: one an action, in groups, with its key at the right, and the recent ones first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui_transformer.explorer.shell.actions.main import ACTIONS, CARD
from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.text.display import cells

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
            yield DiscoveryHit(line, self._run(command), text=command.title)
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
                yield Hit(fits, line, self._run(command), text=command.title)

    def _group(self, command: SystemCommand) -> str:
        if command.title in self._lately:
            return LATELY
        return _GROUPS.get(command.title) or _GROUPS.get(command.title.partition(" ")[0], "")

    def _run(self, command: SystemCommand) -> Callable[[], object]:
        def run() -> object:
            remember("commands", command.title)
            return command.callback()

        return run

    def _line(self, title: Content, told: str, group: str) -> Content:
        """A group, a title, and at the right its key, or what is said of it as far as there is room."""
        width = min(self.app.size.width - BESIDE, WIDEST)
        if width < ROOMY:
            return self._told(title, told, width)
        named = Content.styled(group.ljust(GROUP), "$foreground 60%")
        return named + self._told(title, told, width - GROUP)

    def _told(self, title: Content, told: str, width: int) -> Content:
        if told.startswith(KEY):
            key = told.removeprefix(KEY)
            return title.truncate(max(width - cells(key) - 1, 1), ellipsis=True).pad_right(
                max(width - cells(key) - title.cell_length, 1)
            ) + Content.styled(key, "bold $accent")
        room = width - title.cell_length - 2
        if told == NO_KEY or room < len(NO_KEY):
            return title.truncate(width, ellipsis=True)
        return title + Content("  ") + Content.styled(told, "$foreground 60%").truncate(room, ellipsis=True)
