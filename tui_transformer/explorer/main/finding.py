"""Finding a token, a step or a word, and going from match to match."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.shell.prompt import PromptScreen, reading
from tui_transformer.session.finding import Match, at_token, find
from tui_transformer.session.position import names
from tui_transformer.text.display import visible


class Finding:
    """What was looked for, and the match that is shown."""

    def __init__(self, navigation: Navigation) -> None:
        self._navigation = navigation
        self._found: Sequence[Match] = ()
        self._match = 0

    def ask(self) -> None:
        """Ask for a part of a token, of a step's name or of a word, and go to the first that is found."""
        navigation = self._navigation
        check, go = reading(partial(find, navigation.session), self._begin)
        hint = navigation.hint("a token of the sentence, a step, a word; then {match.next} goes to the next match")
        navigation.open(PromptScreen("Find", hint=hint, check=check, suggestions=names(navigation.session)), go)

    def _begin(self, found: Sequence[Match]) -> None:
        self._found, self._match = found, -1
        self.turn(1)

    def turn(self, by: int) -> None:
        """Go to the next match of what was looked for, or the one before, round and round."""
        navigation, session = self._navigation, self._navigation.session
        if not self._found:
            navigation.say(navigation.hint("nothing was looked for: {find} finds a token, a step, a word"))
            return
        self._match = (self._match + by) % len(self._found)
        match = self._found[self._match]
        if match.token is not None:
            if match.token[0] < len(session.sequences):
                navigation.visit(at_token(session, navigation.position, *match.token))
        elif match.word is not None:
            navigation.follow_word(match.word)
        else:
            navigation.visit(navigation.position.at(match.stop))
        navigation.say(f"{visible(match.says)}: {self._match + 1} of {len(self._found)}")
