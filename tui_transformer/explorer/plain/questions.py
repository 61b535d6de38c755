"""Predict, then reveal, without a screen: a question on the step, what can be answered, and what is right."""

from __future__ import annotations

from collections import Counter

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.question import Question, chosen, question
from tui_transformer.explorer.plain.sentences import view_at
from tui_transformer.explorer.shell.score import keep_score, read_score
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY
from tui_transformer.text.display import visible


class Questions:
    """Asks one question after the other, another one on a step that was asked about."""

    def __init__(self, explored: Exploration) -> None:
        self._explored = explored
        self._numbers: Counter[str] = Counter()
        self._asked: Question | None = None

    def ask(self) -> str:
        """A question on the step, and what can be answered.

        Raises:
            InputError: The step has no numbers.
        """
        stop = self._explored.position.stop
        if stop in (VOCABULARY, TEXT, LOSS):
            raise InputError("there is nothing to predict here: go to a step with numbers")
        view, shape = view_at(self._explored), self._explored.session.trace.program.shape(stop)
        asked = self._asked = question(view, self._explored.position.place, shape, self._numbers[stop])
        self._numbers[stop] += 1
        choices = ", ".join(f"{number} {visible(choice)}" for number, choice in enumerate(asked.choices, 1))
        return f"{visible(asked.text)} It may be {choices}; answer and a number or the words reveals it."

    def reveal(self, typed: str) -> str:
        """Whether an answer was right, why, and the score.

        Raises:
            InputError: Nothing was asked, or nothing is answered.
        """
        asked = self._asked
        if asked is None:
            raise InputError("nothing was asked: predict asks a question on this step")
        if not typed:
            raise InputError("write the answer behind it: answer 2")
        self._asked, place = None, chosen(asked, typed)
        given = visible(typed) if place is None else asked.choices[place]
        right = asked.choices[asked.right]
        score = read_score().and_then(right=place == asked.right)
        keep_score(score)
        said = "Right" if place == asked.right else f"Not {given}: it is {right}"
        return visible(f"{said}; {asked.working}; {score}.")
