"""Features of a dictionary: the strongest of a token, the words each raises, and where in the text it is active."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.analysis.attentions import prepared
from tui_transformer.analysis.features import ActiveFeatures, active_features, feature_words, places_of_features
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.engine.targets import FEATURES
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.features.dictionary import Features, own_dictionary
from tui_transformer.features.labels import own_labels
from tui_transformer.features.steps import PlacedFeatures
from tui_transformer.records import dataclass
from tui_transformer.session.session import Session
from tui_transformer.text.display import SPACE, cells, fit, token_label, visible
from tui_transformer.views.numbers import BarScale

A_WORD, WITH_NUMBER = 7, 14
"""Columns that a word takes, about, and one with a number."""

NUMBER, BAR, LABEL = 9, 10, 30
"""Columns of a value, of its bar, and of a label at most."""


def open_from(port: Port) -> None:
    """The features of what is explored; where it has none yet, those of the dictionary that comes with the model."""
    session = port.session
    if places_of_features(session.trace.program):
        port.open(FeaturesScreen(port))
        return
    path = own_dictionary(session.model.folder)
    if path is None:
        raise InputError(
            "no dictionary of features comes with this model: begin with --features FILE, or learn one "
            "(tui-transformer train --features)"
        )

    def put(session: Session) -> None:
        port.change(session)
        port.say(port.hint("the features are steps of the model now: {undo} takes them out"))
        port.open(FeaturesScreen(port))

    def featured(_: Task) -> Session:
        return session.with_model(session.model.with_features(Features.load(path)), is_the_same=True)

    ask_of_now(port, "features", featured, put)


def labels_at(session: Session, at: str) -> Mapping[int, str]:
    """The labels of features at a step; none where these are not of the dictionary that comes with the model."""
    own = own_dictionary(session.model.folder)
    placed = (each for each in session.model.added if isinstance(each, PlacedFeatures) and each.features.path == own)
    is_own = any(spot.name == at for each in placed for spot in each.spots)
    return own_labels(own) if is_own else {}


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of a token.

    Attributes:
        active: Its strongest features.
        words: What each of them adds to every logit, features × words; none where it spells no words.
        values: How strong they are at every token, tokens × features.
    """

    active: ActiveFeatures
    words: Host | None
    values: Host


class FeaturesScreen(Overview, tool="features"):
    """The features of one token, the strongest first, below the text, which the selected one shades."""

    DEFAULT_CSS = """
    FeaturesScreen {
        #features-text { height: auto; max-height: 5; padding: 0 1; margin: 0 0 1 0; }
        #features-columns { height: 1; color: $foreground 65%; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-short #features-text { max-height: 2; margin: 0; }
    }
    """

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.places = places_of_features(self.session.trace.program)
        self.at = next((at for at in self.places if port.position.stop.startswith(at)), self.places[-1])
        self.token = port.position.place.row
        self.labels = labels_at(self.session, self.at)
        self.found: Found | None = None

    def content(self) -> ComposeResult:
        yield Static(id="features-text", markup=False)
        yield Static(id="features-columns", markup=False)
        yield LineList()

    def tokens(self, at: str) -> tuple[str, ...]:
        """The words of the text that is read at a step."""
        axis = self.session.trace.program.axes(at + FEATURES)[0]
        words = axis.words or self.session.labels.sequences.get(axis.sequence)
        return words if words is not None and len(words) == axis.size else tuple(map(str, range(axis.size)))

    def begin(self) -> None:
        trace, at = self.session.trace, self.at
        self.token = token = min(self.token, len(self.tokens(at)) - 1)

        def work(task: Task) -> Found:
            prepared(trace, f"{at}.error", task.report)
            (active,) = active_features(trace, at, 50, tokens=range(token, token + 1))  # as many are listed
            task.report(f"what features of token {token} write")
            try:
                words = next(feature_words(trace, [active]), None)
            except InputError:  # a sentence's vector, or norms on the way that cannot be frozen
                words = None
            chosen = [each.feature for each in active.features]
            values = np.concatenate([part[:, chosen] for _, part in trace.blocks(at + FEATURES)])
            return Found(active, words, values)

        self.compute(work, self._take)

    def _take(self, found: Found) -> None:
        self.found = found
        self.lines.show(len(found.active.features), partial(self._line, found))
        self.lines.cursor = 0 if found.active.features else None

    # What is shown

    @property
    def _label_room(self) -> int:
        return LABEL if self.labels and self.size.width >= 3 * LABEL else 0

    def _line(self, found: Found, index: int) -> Text:
        one, most = found.active.features[index], abs(found.active.features[0].value)
        text = Text(f" f{one.feature:<7}{minus(f'{one.value:.3f}'):>{NUMBER}}  ", no_wrap=True)
        text.append(f"{BarScale(most).bar(one.value, BAR):<{BAR}}", "" if self.app.no_color else "cyan")
        text.append(f"  {in_percent(one.left):>7}  ")
        if self._label_room:
            text.append(f"{fit(self.labels.get(one.feature, ''), self._label_room)}  ")
        room = self.lines.size.width - text.cell_len
        raised, lowered = self._words(found, index, max(room // (2 * A_WORD), 1))
        text.append(f"↑ {', '.join(raised)}   ↓ {', '.join(lowered)}" if raised else "")
        return text

    def _words(self, found: Found, index: int, count: int, form: str = "{}") -> tuple[list[str], list[str]]:
        if found.words is None:
            return [], []
        logits = found.words[index]
        order = np.argsort(logits, kind="stable").tolist()

        def told(words: list[int]) -> list[str]:
            label = self.session.labels.word
            return [form.format(token_label(label(each)), minus(f"{logits[each]:+.2f}")) for each in words[:count]]

        return told(order[::-1]), told(order)

    def texts(self) -> Texts:
        found, index = self.found, self.lines.cursor
        at, token = (self.at, self.token) if found is None else (found.active.at, found.active.token)
        tokens = self.tokens(at)
        self.query_one("#features-text", Static).update(self._text(tokens, token))
        label = f"{'label':<{self._label_room}}  " if self._label_room else ""
        words = "what it adds to logits, norms frozen" if found and found.words is not None else ""
        columns = f" {'feature':<8}{'value':>{NUMBER}}  {'':<{BAR}}  {'left':>7}  {label}{words}"
        self.query_one("#features-columns", Static).update(columns)
        heading = f"Features at {at} · token {token}, {visible(tokens[token].strip())}"
        if found is None:
            return Texts(heading, "", ("reading the dictionary", ""))
        active, useful = found.active, {"layer.next": len(self.places) > 1}
        count = self.session.trace.program.shape(at + FEATURES)[-1]
        note = f"{active.active:,} of {count:,} active · they leave {in_percent(active.error)} of it, ‖e‖ ÷ ‖x‖"
        if index is None:
            return Texts(heading, note, ("no feature is active at this token", ""), useful=useful)
        one = active.features[index]
        raised, lowered = self._words(found, index, max((self.size.width - 12) // (2 * WITH_NUMBER), 1), "{} {}")
        own = self.labels.get(one.feature)
        where = np.flatnonzero(found.values[:, index])
        first = f"f{one.feature}{f' · {own}' if own else ''} · active at {len(where):,} of {len(tokens):,} tokens"
        words = f"adds ↑ {', '.join(raised)}   ↓ {', '.join(lowered)}" if raised else "it writes toward no words"
        return Texts(heading, note, (visible(first), words), useful=useful)

    def _text(self, tokens: tuple[str, ...], token: int) -> Content:
        """The words around the token, as many as there is room for, shaded by how strong the selected feature is."""
        values = np.zeros(len(tokens))
        if self.found is not None and self.lines.cursor is not None:
            values = np.nan_to_num(np.abs(self.found.values[:, self.lines.cursor]))
        most = float(values.max()) or 1.0
        in_pieces, depth = any(token.startswith(SPACE) for token in tokens), Surface.of(self.app).depth
        lines = 2 if self.size.height < 18 else 4
        room, start = max(self.size.width - 4, 1) * lines // 2, token
        while start > 0 and room > 0:
            room -= cells(visible(tokens[start - 1])) + 1
            start -= 1
        parts = [Content("… ")] if start else []
        for at in range(start, len(tokens)):
            word, shade = visible(tokens[at]), round(75 * float(values[at]) / most)  # per cent of the accent
            ground = f"on $accent {shade}%"  # of few colours none, where it is weak
            active = {"none": "underline", "truecolor": ground}.get(depth, f"underline {ground}")
            mark = "bold reverse" if at == token else active if shade else ""
            if at > start and (not in_pieces or word.startswith(SPACE)):
                parts.append(Content(" "))
            parts.append(Content.styled(word.removeprefix(SPACE) or SPACE, mark))
        return Content("").join(parts)

    # What keys do

    def action_token(self, by: int) -> None:
        wanted = max(0, min(self.token + by, len(self.tokens(self.at)) - 1))
        if wanted != self.token:
            self.token = wanted
            self.begin()

    def action_place(self) -> None:
        self.at = following(self.places, self.at)
        self.labels = labels_at(self.session, self.at)
        self.begin()

    def chosen(self) -> None:
        if self.found is not None and self.lines.cursor is not None:
            active = self.found.active
            feature = active.features[self.lines.cursor].feature
            leave_to(self, active.at + FEATURES, row=active.token, column=feature)
