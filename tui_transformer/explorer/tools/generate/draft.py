"""A text that is being written: a state after every token, and the one that is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui_transformer.engine.computation import Watch
from tui_transformer.explorer.tools.generate.choices import shares_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import State, Writer


@dataclass(frozen=True, eq=False)
class Draft:
    """Never changed: every change makes a new one, so undo is a list of them.

    Attributes:
        writer: What writes; used by the worker only.
        settings: How the next tokens are chosen.
        states: The state after the prompt, and one after every token that was written.
        shares: The probability with which every token after the prompt was chosen.
        place: The state that is looked at.
    """

    writer: Writer
    settings: Settings
    states: tuple[State, ...]
    shares: tuple[float, ...] = ()
    place: int = 0

    @property
    def state(self) -> State:
        """The text so far, with the tokens that may come next."""
        return self.states[self.place]

    @property
    def at_end(self) -> bool:
        """Whether no token was written after the place."""
        return self.place == len(self.states) - 1

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole text."""
        return self.states[-1].ids

    @property
    def chosen(self) -> int | None:
        """The token that was written at the place, None at the end."""
        return None if self.at_end else self.states[self.place + 1].ids[-1]

    @property
    def marked(self) -> int:
        """The token that was written at the place, or the one that is about to be."""
        return self.state.candidate if self.chosen is None else self.chosen

    @property
    def by_hand(self) -> bool:
        """Whether the token at the place is another than the settings chose."""
        return self.chosen not in (None, self.state.candidate)

    @property
    def limit(self) -> int:
        """Tokens that the text may have."""
        return min(self.state.prompt + self.settings.max_new_tokens, self.writer.model.config.max_length)

    @property
    def tokens_a_second(self) -> float:
        """How fast tokens were computed one by one: the mean over those that were; 0 where there are none."""
        seconds = [state.seconds for state in self.states[1:]]
        return len(seconds) / sum(seconds) if sum(seconds) else 0.0

    def moved(self, place: int) -> Draft:
        """Looking at another place."""
        return replace(self, place=max(min(place, len(self.states) - 1), 0))

    def written(self, token: int | None = None, before: Watch | None = None) -> Draft:
        """One token after the place, chosen by hand or by the settings; what was after it is left out.

        `before` is called with every step that is about to run, and may raise to end it.

        Raises:
            InputError: There is no room for it.
        """
        self.writer.settings = self.settings
        state, place = self.writer.next(self.state, token, before), self.place + 1
        share = float(shares_of(self.state)[state.ids[-1]])
        shares = (*self.shares[: self.place], share)
        return replace(self, states=(*self.states[:place], state), shares=shares, place=place)

    def chosen_by(self, settings: Settings) -> Draft:
        """The place under other settings; what was after it is left out."""
        self.writer.settings = settings
        state = self.writer.again(self.state)
        states = (*self.states[: self.place], state)
        return replace(self, settings=settings, states=states, shares=self.shares[: self.place])
