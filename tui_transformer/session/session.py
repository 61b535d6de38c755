"""A session: a model, a sentence and the edits; everything on screen follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.analysis.statistics import norm
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.changes import Add, Apply, Project, Scale, is_of_any_text, over_all
from tui_transformer.engine.edits import Change
from tui_transformer.engine.gradient import NOT_COUNTED, Gradients, backward, backward_from, kept_for_backward
from tui_transformer.engine.gradient_explanation import has_gradient
from tui_transformer.engine.parts import check_memory
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.guide.texts import Stop
from tui_transformer.model import Model
from tui_transformer.model.options import PLAIN
from tui_transformer.model.targets import Ids, default_targets, has_loss, own_answer
from tui_transformer.records import dataclass, replace
from tui_transformer.session.sentences import Sentences, kept
from tui_transformer.session.view_state import GRADIENT, NOTHING, UNBROKEN, Measure, Overlay
from tui_transformer.text.dispatch import load_vocabulary
from tui_transformer.text.known_words import sample_sentence
from tui_transformer.views.step_view import Limits, extremes

if TYPE_CHECKING:
    from tui_transformer.report.differences import Comparison

VOCABULARY, TEXT, LOSS = "vocabulary", "text", "loss"
"""The stops before the first step and after the last, and the one where the way back begins."""

ALONE: Mapping[str, Any] = {"ids": None, "mask": None, "batch": (), "item": 0}
"""Beside a text, that it is the only one and read whole."""


@dataclass(frozen=True, eq=False)
class Session(Sentences):
    """One state of what is explored. Never changed: every change makes a new one, so undo is a list of them.

    Attributes:
        edits: Cells set by hand, ablated or patched.
        targets: The token ID that is right at every position; None for the default ones.
        measure: What ablations and patches are measured by; None for ln p of the most likely token and the divergence.
        overlay: What is shown beside every step. With the gradient, the steps are walked backwards.
    """

    edits: tuple[Change, ...] = ()
    targets: Ids | None = None
    overlay: Overlay = NOTHING
    measure: Measure | None = None

    @kept("edited")
    def trace(self) -> Trace:
        """The trace with the edits."""
        return self.base.edited(self.edits)

    def extremes(self, name: str) -> Limits | None:
        """The limits of a step in all heads, looked for once; None where it is not kept whole."""
        return self.cache.edited.made(f"extremes of {name}", lambda: extremes(self.trace, name))

    def knows_extremes(self, name: str) -> bool:
        """Whether they were looked for."""
        return f"extremes of {name}" in self.cache.edited

    @property
    def backward(self) -> bool:
        """Whether the steps are walked backwards, from the loss."""
        return self.overlay.kind == "gradient"

    @property
    def stops(self) -> tuple[str, ...]:
        """Where stepping goes: forwards, or from the loss back through every step that it depends on."""
        return self.backward_stops if self.backward else self.forward_stops

    @kept("tokens")
    def backward_stops(self) -> tuple[str, ...]:
        """The loss, and every step that it depends on."""
        return (LOSS, *(name for name in has_gradient(self.base) if name in self.base.program.by_name))

    @kept("tokens")
    def forward_stops(self) -> tuple[str, ...]:
        """The vocabulary, every step, and the text at the end."""
        program, has_words = self.base.program, self.model.vocabulary is not None
        first, last = (VOCABULARY,) * has_words, (TEXT,) * (has_words and bool(program.logits))
        return (*first, *(step.name for step in program.steps), *last)

    # The overlay

    @property
    def has_loss(self) -> bool:
        """Whether there are predictions to compare with targets."""
        return has_loss(self.base.program) and not self.breaks

    @kept("backward")
    def loss_targets(self) -> Ids:
        """The targets that were set, or the default ones."""
        if self.targets is not None:
            return self.targets
        return own_answer(self.base) if self.answers_once else self._text_targets

    @property
    def answers_once(self) -> bool:
        """Whether by default only the model's own answer is a target: nothing else in the sentence can be one."""
        from tui_transformer.learning.recipes import answers_first

        return set(self._text_targets) == {NOT_COUNTED} or answers_first(self.model.folder)

    @kept("tokens")
    def _text_targets(self) -> Ids:
        from tui_transformer.analysis.score import text_targets

        known = has_loss(self.base.program)
        return text_targets(self.base, self.predicted) if known else default_targets(self.base.program, self.predicted)

    @property
    def gradients(self) -> Gradients:
        """The loss and the gradient of every step and weight; all are computed at once."""
        return self.go_back(lambda _: None)

    @property
    def went_back(self) -> bool:
        """Whether the gradients are there."""
        return "gradients" in self.cache.backward

    def go_back(self, report: Report) -> Gradients:
        """The gradients, computed if they are not there; `report` is told whose, and may raise to end it."""
        return self.cache.backward.made("gradients", lambda: self._differentiate(report))

    def _differentiate(self, report: Report) -> Gradients:
        trace, program = self.trace, self.trace.program
        if trace.backend.device == "cpu":  # values that are read on the way, and gradients, which all stay
            read = (name for name in kept_for_backward(program) if trace.held_value(name) is None)
            cells = trace.batch * sum(math.prod(program.shape(name)) for name in (*has_gradient(trace), *read))
            needed = cells * trace.backend.dtype.itemsize
            check_memory(needed, f"gradients of {len(self.predicted):,} tokens need", "use fewer tokens")
        trace.compute(before=lambda step: report(step.name))
        gradients: dict[str, Host] = {}

        def visit(name: str, gradient: Array) -> None:
            report(f"gradient of {name}")
            gradients[name] = trace.hand_out(name, gradient)

        metric = self.scalar
        if metric is None:
            loss = backward(trace, [self.loss_targets], visit)
            return Gradients(loss.mean, gradients, counted=loss.counted)
        from tui_transformer.analysis.input_attribution import start_of

        value, start = start_of(trace, metric, self.answer_rows)
        start = replace(start, description=metric.said(self.model.target_label))
        backward_from(trace, start, visit)
        return Gradients(value, gradients, start)

    @property
    def scalar(self) -> Metric | None:
        """The metric that gradients are of, as it was chosen; None for the loss, and in place of a distance of 0."""
        measure = self.measure
        if measure is None or not METRICS[measure.name].tokens or not measure.tokens:
            return None  # only one of tokens has a gradient by the logits of the sentence itself
        return Metric(measure.name, measure.tokens)

    @kept("backward")
    def gradient_norms(self) -> Mapping[str, float]:
        """The norm of the gradient of every step and weight."""
        return {name: norm(gradient) for name, gradient in self.gradients.values.items()}

    @kept("compared")
    def other(self) -> Session:
        """The other trace's session, where one is compared: this one, but for what differs."""
        overlay = self.overlay
        edits = overlay.values or (self.edits if overlay.edits else ())
        same = replace(self, overlay=NOTHING, targets=None, edits=edits)
        if overlay.model is not None:
            same = _with_what_it_has(replace(same, model=overlay.model))
        elif overlay.whole:
            return _with_what_it_has(replace(same, breaks=()))
        elif overlay.text is None:
            return replace(same, given=self.cache.keeping("tokens"))
        return same if overlay.text is None else same.with_text(overlay.text)

    @property
    def comparison(self) -> Comparison | None:
        """How far this trace and the other are apart, once that was computed."""
        kept: Comparison | None = self.cache.compared.get("comparison")
        return kept

    def compare(self, report: Report) -> Comparison:
        """Compare every step of this trace and the other; `report` may raise to end it."""
        from tui_transformer.report.differences import compare_traces

        return self.cache.compared.made("comparison", lambda: compare_traces(self.trace, self.other.trace, report))

    def with_overlay(self, overlay: Overlay) -> Session:
        """The same with something else beside; no value is computed again.

        Raises:
            InputError: The other trace cannot be made; this session is as it was.
        """
        changed = replace(self, overlay=overlay, given=self.cache.keeping("tokens", "edited", "backward"))
        if overlay.kind == "trace":
            _ = changed.other.trace
        return changed

    def with_targets(self, targets: Ids) -> Session:
        """The same, walked backwards from the loss toward these targets."""
        return replace(self, targets=targets, overlay=GRADIENT, given=self.cache.keeping("tokens", "edited"))

    def with_measure(self, measure: Measure | None) -> Session:
        """The same, with what it does measured by something else; no value is computed again."""
        return replace(self, measure=measure, given=self.cache.keeping("tokens", "edited", "compared"))

    def with_budget(self, budget: int) -> Session:
        """The same, keeping as many bytes of values."""
        return self._changed(budget=budget, targets=self.targets)

    # Changes

    def with_text(self, text: str) -> Session:
        """The same model on another sentence, or on token IDs where it has no words.

        Edits of weights stay, and those that name no rows, and the mask for as many tokens; other edits of steps belong
        to the old sentence.

        Raises:
            InputError: The sentence cannot be read; this session is as it was.
        """
        given: str | Ids = _ids(text) if self.model.vocabulary is None else text
        batch = (*self.batch[: self.item], given, *self.batch[self.item + 1 :]) if self.batch else ()
        return self._changed(edits=_lasting_edits(self), batch=batch, **_text_or_ids(given))

    def with_batch(self, batch: tuple[str | Ids, ...], item: int = 0) -> Session:
        """The same model on several sentences, the shorter ones padded; one of them is shown.

        Raises:
            InputError: There is no such sentence, or one cannot be read; this session is as it was.
        """
        if not 0 <= item < len(batch):
            raise InputError(f"there is no sentence {item}: there are {len(batch)}, from 0")
        edits, given = _lasting_edits(self), _text_or_ids(batch[item])
        return self._changed(edits=edits, mask=None, batch=batch, item=item, **given)

    def with_decoder_text(self, text: str) -> Session:
        """The same model and source with another target, or token IDs where there are no words.

        Raises:
            InputError: The text cannot be read; this session is as it was.
        """
        edits = _lasting_edits(self)
        if self.model.vocabulary is None:
            return self._changed(edits=edits, decoder_text="", decoder_ids=_ids(text))
        return self._changed(edits=edits, decoder_text=text, decoder_ids=None)

    def with_model(self, model: Model, *, is_the_same: bool = False) -> Session:
        """Another model on the same sentence, without edits, targets, and what the one before has of itself beside it.

        They stay where it is the same, but for more steps, or where and how precisely it is computed.

        Raises:
            InputError: The model cannot read the sentence.
        """
        if is_the_same:
            return self._changed(model=model, targets=self.targets)
        beside, before = self.overlay.model, self.model
        own = beside is not None and (beside.name, beside.folder) == (before.name, before.folder)
        overlay = NOTHING if own else self.overlay
        return self._changed(model=model, edits=(), breaks=(), measure=None, overlay=overlay)

    def with_breaks(self, *names: str) -> Session:
        """The same with these things computed otherwise, beside what they would be; without any, as it was.

        Edits stay as far as their steps are there.
        """
        overlay = UNBROKEN if names else NOTHING
        changed = replace(self, breaks=names, overlay=overlay, edits=(), targets=None)
        known = changed.base.program
        kept = tuple(edit for edit in self.edits if edit.name in (*known.by_name, *known.weights))
        given = changed.cache.keeping("tokens")
        return self._changed(breaks=names, overlay=overlay, edits=kept, given=given)

    def with_vocabulary(self, where: str) -> Session:
        """The same model with another vocabulary, read from its file again; a sentence that it knows takes its place.

        Raises:
            InputError: No such vocabulary, or one that the model cannot have.
        """
        model = self.model.changed(vocabulary=load_vocabulary(where))
        words = model.vocabulary
        if words is None:
            return self._changed(model=model, edits=(), measure=None)
        text = self.text if self.text and model.knows(self.text) else sample_sentence(words)
        return self._changed(model=model, edits=(), measure=None, text=text, **ALONE)

    def for_tour(self, stop: Stop) -> Session:
        """The session with the vocabulary, positions, sentence and target that a stop of the tour is about.

        Raises:
            InputError: The model cannot be set so.
        """
        changes, read, words = dict[str, Any](), dict[str, Any](), self.model.vocabulary
        if stop.vocabulary is not None and words is not None and words.name != stop.vocabulary:
            changes["vocabulary"] = stop.vocabulary
        if stop.positions is not None and getattr(self.model.config, "positions", None) != stop.positions:
            changes["positions"] = stop.positions
        if stop.sentence is not None:
            read = {"text": stop.sentence, "framing": PLAIN, "pair": None, **ALONE}
        if stop.target is not None:
            read |= {"decoder_text": stop.target, "decoder_ids": None}
        if not changes and all(getattr(self, name) == value for name, value in read.items()):
            return self
        model = self.model.changed(**changes) if changes else self.model
        return self._changed(model=model, edits=(), measure=None, **read)

    def with_edits(self, *edits: Change) -> Session:
        """More edits: what sets cells takes the place of earlier edits of the same cells; what adds or scales adds up.

        Raises:
            InputError: There are no such cells, or they cannot hold the values.
        """
        program, givens = self.base.program, self.base.givens
        placed = tuple(edit.placed(program, givens) for edit in edits)
        setting = (edit for edit in placed if not isinstance(edit, Add | Scale | Project | Apply))
        cells = {(edit.name, edit.region) for edit in setting}
        before = ((old, old.placed(program, givens)) for old in self.edits)
        others = tuple(old for old, there in before if (there.name, there.region) not in cells)
        changed = replace(self, edits=(*others, *placed), given=self.cache.keeping("tokens"))
        _ = changed.trace
        return changed

    @property
    def unedited(self) -> Session:
        """The same without edits."""
        return replace(self, edits=(), given=self.cache.keeping("tokens"))

    def _changed(self, **changes: Any) -> Session:
        """The same with something else to read, once that was read; the targets were those of the old tokens.

        It is without gradients where it has no loss, and without a mask of other tokens.
        """
        session = replace(self, **({"targets": None} | changes))
        if session.mask is not None and len(session.mask) != len(session.encoding.ids):
            session = replace(session, mask=None)
        if session.edits:
            made = tuple(over_all(edit, self.base.program, session.base.program) for edit in session.edits)
            session = replace(session, edits=made, given=session.cache.keeping("tokens"))
        _ = session.trace
        overlay = session.overlay
        # what is beside it may have been made for the session before: for its loss, its edits, its tokens
        if session.backward:
            outlived = not session.has_loss
        else:
            ids, before = ([each.ids for each in one.sequences.values()] for one in (session, self))
            of_edits = overlay.kind == "trace" and not overlay.edits and not session.edits
            outlived = of_edits or (bool(overlay.values) and ids != before)
        return session.with_overlay(NOTHING) if outlived else session


def gradient_cost(session: Session) -> int:
    """About how many operations it takes to have the gradients: forward, and back for twice as many."""
    program = session.trace.program
    return 0 if session.went_back else 3 * sum(map(program.flops, program.steps))


def _text_or_ids(given: str | Ids) -> dict[str, Any]:
    return {"text": given, "ids": None} if isinstance(given, str) else {"text": "", "ids": given}


def _with_what_it_has(session: Session) -> Session:
    """A session with those of its edits alone whose steps and cells its model has."""
    program, givens = session.base.program, session.base.givens

    def has(edit: Change) -> bool:
        try:
            edit.placed(program, givens)
        except InputError:
            return False
        return True

    edits = tuple(filter(has, session.edits))
    return replace(session, edits=edits, given=session.cache.keeping("tokens"))


def _lasting_edits(session: Session) -> tuple[Change, ...]:
    known = session.base.program
    return tuple(edit for edit in session.edits if edit.name in known.weights or is_of_any_text(known, edit))


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError as error:
        raise InputError("this model has no words: write token IDs, such as 4 5 6") from error
