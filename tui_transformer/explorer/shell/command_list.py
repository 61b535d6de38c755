"""The lines of the command palette: one an action, with its key at the right, those that were chosen lately first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.text.display import cells

KEY, NO_KEY = "key: ", "no key"
"""How the help of a command begins that has a key, and what it is of one that has none."""

WIDEST, BESIDE = 110, 8
"""Columns of a line at most, and those of the terminal that it leaves to the palette's border and bar."""

BEFORE_OTHERS = 0.05
"""What a command that was chosen lately is ahead of others that fit as well."""


class CommandLines(Provider):
    """Everything that can be done on the screen in front."""

    _lately: tuple[str, ...] = ()

    async def startup(self) -> None:
        """Read what was chosen lately once, not at every letter."""
        self._lately = recent("commands")

    async def discover(self) -> Hits:
        """All of it: what was chosen lately first, then in the order of the keys and menus."""
        lately, every = self._lately, list(self._commands())
        place = {each.title: lately.index(each.title) if each.title in lately else len(lately) for each in every}
        for command in sorted(every, key=lambda each: place[each.title]):
            title = Content(command.title)
            yield DiscoveryHit(self._line(title, command.help), self._run(command), text=command.title)

    async def search(self, query: str) -> Hits:
        """What fits the letters that are typed, in its title or as its key."""
        matcher = self.matcher(query)
        for command in self._commands():
            is_key = command.help.startswith(KEY) and command.help.removeprefix(KEY).replace(" ", "") == query
            words = query.casefold().strip() in command.title.casefold()
            fits = matcher.match(command.title) + 10 * words + 20 * is_key  # letters far apart fit, too, but come last
            if fits > 0:
                fits += BEFORE_OTHERS * (command.title in self._lately)
                line = self._line(matcher.highlight(command.title), command.help)
                yield Hit(fits, line, self._run(command), text=command.title)

    def _commands(self) -> Iterable[SystemCommand]:
        return self.app.get_system_commands(self.screen)

    def _run(self, command: SystemCommand) -> Callable[[], object]:
        def run() -> object:
            remember("commands", command.title)
            return command.callback()

        return run

    def _line(self, title: Content, told: str) -> Content:
        """A title, and at the right its key, or what is said of it as far as there is room."""
        width = min(self.app.size.width - BESIDE, WIDEST)
        if told.startswith(KEY):
            key = told.removeprefix(KEY)
            return title.truncate(max(width - cells(key) - 1, 1), ellipsis=True).pad_right(
                max(width - cells(key) - title.cell_length, 1)
            ) + Content.styled(key, "bold $accent")
        room = width - title.cell_length - 2
        if told == NO_KEY or room < len(NO_KEY):
            return title.truncate(width, ellipsis=True)
        return title + Content("  ") + Content.styled(told, "$foreground 60%").truncate(room, ellipsis=True)
