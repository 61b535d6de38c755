"""The opening: the answer to the sentence and what there is to do, in the line of keys until the first key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.state.told import told, told_cost
from tui_transformer.explorer.state.tours import tour_of
from tui_transformer.explorer.widgets.inks import Inks
from tui_transformer.guide.texts import tour_question

MOST = 2_000_000_000
"""Operations that an answer may take that nobody asked for."""

RANDOM = (
    "random weights: nothing is learned, every number is computed",
    "random weights: nothing is learned",
    "random weights",
)
"""The answer of a model that was not trained, in ever fewer words."""

WRITE = "sentence.edit"
CHOICES = "step.next", WRITE, "open"
ORDER = "step.next", "tour", WRITE, "open"
WORDS = (
    ("step through", "step through", "step"),
    ("your own sentence", "your own", "write"),
    ("another model", "model", "open"),
)
TO_TRAINED = ("a trained model", "a trained model", "trained")
"""The choices, in ever fewer words; and the last of a model that was not trained."""


class Opening:
    """The line that a person meets first; it ends with the first key.

    Attributes:
        open: Whether it is shown.
    """

    def __init__(self, requests: Requests, show: Callable[[], None]) -> None:
        """A line without an answer yet; `show` draws it."""
        self.open = True
        self._requests, self._show = requests, show
        self._answers: tuple[str, ...] = ()

    def begin(self, session: Session) -> None:
        """Work the answer out where that does not take long; of random words, which have no meaning, nothing is."""
        if session.model.folder is None and session.model.config.vocab_size:
            self._answers = RANDOM
            return
        cost = told_cost(session)
        if cost <= MOST:
            self._requests.ask("opening", cost, lambda task: told(session, task.report), self._answered)

    def end(self) -> None:
        """A key was pressed."""
        if self.open:
            self.open = False
            self._requests.cancel("opening")
            self._show()

    def line(self, session: Session, keys: Mapping[str, str], width: int, inks: Inks) -> Text | None:
        """The answer, and each choice with its key, given by name; in fewer words or None where there is no room."""
        return next((line for line in self._lines(session, keys, inks) if line.cell_len <= width), None)

    def _lines(self, session: Session, keys: Mapping[str, str], inks: Inks) -> Iterator[Text]:
        name = tour_of(session)
        told = [tour_question(name) or "guided tour", "the story", "story"] if name else []
        choices = (*WORDS[:-1], TO_TRAINED) if self._answers == RANDOM else WORDS
        there = [choice for choice in ORDER if choice in keys and (session.model.config.vocab_size or choice != WRITE)]
        answers = self._answers or ("",) * len(RANDOM)
        for answer, *said in zip(answers, *choices, strict=True):
            line = _begun(answer, inks)
            words = dict(zip(CHOICES, said, strict=True)) | ({"tour": told.pop(0)} if told else {})
            for choice in there:
                if choice in words:
                    line.append(keys[choice], inks.accent).append(f" {words[choice]}   ", inks.quiet)
            for always in ("help", "quit"):
                line.append(keys[always], inks.accent).append(f" {always}  ", inks.quiet)
            line.rstrip()
            yield line
        alone = " ".join(keys[choice] for choice in there if name or choice != "tour")
        line = _begun(answers[-1], inks).append(alone, inks.accent)
        yield line.append(f"   {keys['help']}", inks.accent).append(" help", inks.quiet)

    def _answered(self, answer: str) -> None:
        self._answers = (answer,) * len(RANDOM)
        if self.open:
            self._show()


def _begun(answer: str, inks: Inks) -> Text:
    """The answer, where there is one."""
    line = Text(" ", inks.plain, no_wrap=True)
    return line.append(answer, inks.accent).append("   ", inks.plain) if answer else line
