"""The one-line texts of the main screen and the sentence, written again where they change."""

from __future__ import annotations

from textual.content import Content

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.layout import PANES, Panes
from tui_transformer.explorer.main.opening import Opening
from tui_transformer.explorer.main.panes import texts
from tui_transformer.explorer.main.panes.sentence import Sentence, SentencePane
from tui_transformer.explorer.main.panes.text import WORDS
from tui_transformer.explorer.main.usable import refused
from tui_transformer.explorer.shell.actions.main import ACTIONS, ALWAYS, COUNTED, FOCUSED, KEY_LINE, ON_CARD
from tui_transformer.explorer.shell.key_line import key_line
from tui_transformer.explorer.shell.keymap import first_key, in_use
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.written import Line, Written
from tui_transformer.explorer.state.session import VOCABULARY
from tui_transformer.explorer.widgets.inks import Inks, inks_of

INSTEAD = {VOCABULARY: "vocabulary", **dict.fromkeys(WORDS, "text")}
"""Names of the panes that stops show in the place of the matrix."""

LEAST_SHOWN = 0.00005
"""Seconds of computing a step that are worth saying."""


class Lines:
    """Title, crumbs, what a step is, summary of the cell, panes, keys, sentence.

    Attributes:
        opening: What the line of keys says until the first key.
    """

    def __init__(self, explored: Exploration, panes: Panes, requests: Requests) -> None:
        """Lines of the screen of these panes."""
        self._explored, self._panes, self._requests = explored, panes, requests
        self.opening = Opening(requests, self.show)
        self._written = Written(panes.screen)
        self._times: dict[str, float] = {}
        self._count = ""

    def count(self, digits: str) -> None:
        """Say what is made so often if it is typed now; "" for no count."""
        self._count = digits
        self.show()

    def forget_times(self) -> None:
        """Another session computes its steps anew."""
        self._times.clear()

    def took(self, name: str, seconds: float) -> None:
        """Remember the longest time that a step took."""
        self._times[name] = max(seconds, self._times.get(name, 0.0))

    def show(self) -> None:
        """Write the lines that are not what they were."""
        for name, content in self._contents().items():
            self._written.write(name, content)
        pane = self._panes.screen.query_one(SentencePane)
        pane.show(self._sentences())
        if (batch := self._explored.session.batch) and pane.is_attached:
            key = next(each.shown for each in in_use(ACTIONS, pane.app) if each.id == "item.next")
            pane.border_title = f"{PANES['sentence']} {self._explored.session.item + 1} of {len(batch)} · {key} next"
        elif pane.border_title != PANES["sentence"]:
            pane.border_title = PANES["sentence"]

    def _contents(self) -> dict[str, Line]:
        explored, screen = self._explored, self._panes.screen
        session, stop, scene = explored.session, explored.position.stop, explored.scene
        width, inks = screen.size.width, inks_of(screen)
        tour = first_key(screen.app, "tour")
        state = f"{self._requests.doing or texts.state(session, stop)}   "
        return {
            "title": texts.title(session, state, self._time(stop), width, inks),
            "crumbs": texts.crumbs(session, stop, scene, width, inks),
            "about": texts.about(session, stop, tour),
            "summary": texts.summary(session, stop, scene, inks, tour),
            "tabs": texts.tabs(self._panes.digits(), explored.view.active, inks),
            "keys": self._keys(width, inks),
        }

    def _keys(self, width: int, inks: Inks) -> Line:
        """The choices of the opening; then the keys of the focused pane, and the most useful others.

        What would be refused is left out, and a key that the pane has is not named again.
        """
        explored, app = self._explored, self._panes.screen.app
        session, stop, active = explored.session, explored.position.stop, explored.view.active
        card = self._panes.on_card
        if self.opening.open and not card:
            shown = {action.id: action.shown for action in in_use(ACTIONS, app)}
            if (line := self.opening.line(session, shown, width, inks)) is not None:
                return line
        if self._count:
            said = Content.styled(f" {self._count} times ", "bold $accent")
            return Content("").join([said, key_line(COUNTED, app, width - said.cell_length, 1)])
        first = FOCUSED.get("tour" if card else INSTEAD.get(stop, active) if active == "matrix" else active, ())
        left_out = refused(session, stop, explored.scene) | (ON_CARD if card else set[str]())
        taken = {action.shown for action in first}
        named = {action.id: action for action in ACTIONS if action.id not in left_out}
        others = [named[name] for name in KEY_LINE if name in named and named[name].shown not in taken]
        always = [named[name] for name in ALWAYS if name in named]
        return key_line([*first, *others, *always], app, width, len(always))

    def _time(self, stop: str) -> str:
        seconds = self._times.get(stop, 0.0)
        return f" · {seconds * 1000:.1f} ms" if seconds >= LEAST_SHOWN else ""

    def _sentences(self) -> list[Sentence]:
        """The token sequences, with the tokens that the cursor's row and column stand for."""
        session, scene = self._explored.session, self._explored.scene
        if scene is None:
            return [Sentence(each, vocabulary=session.words_of(name)) for name, each in session.sequences.items()]
        rows, columns, place = scene.view.rows.sequence, scene.view.columns.sequence, scene.place
        return [
            Sentence(
                encoding,
                place.row if rows == name else None,
                place.column if columns == name else None,
                session.words_of(name),
            )
            for name, encoding in session.sequences.items()
        ]
