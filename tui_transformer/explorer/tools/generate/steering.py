"""What writing begins with, and what is added to a step while a text is written."""

from __future__ import annotations

import re
from collections.abc import Callable

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.engine.changes import Add, standing
from tui_transformer.engine.edits import Change
from tui_transformer.engine.targets import FEATURES
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import defaults_of
from tui_transformer.generation.text import token_texts
from tui_transformer.generation.writing import Writer
from tui_transformer.model.options import PLAIN
from tui_transformer.records import dataclass, replace
from tui_transformer.session.edit_format import broken, written
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.steering import steered, steering

STEERS = (
    "STEP += 4*direction('one text', 'another'), 4*vector.npy, or STEP.features[:, 12] += 4; an empty line takes it out"
)
"""How something is added, which the slider then moves."""
LAYER_OUTPUT = re.compile(r"(decoder\.)?\d+\.output")
PAIR = ("I am happy", "I am sad")


@dataclass(frozen=True, eq=False)
class Start:
    """A writer with the edits of the explorer but that which a slider moves, and what is to be said of it.

    Attributes:
        others: Those edits, as they are meant for a text that grows.
        place: Where that which a slider moves stands among them.
    """

    writer: Writer
    others: tuple[Change, ...]
    place: int
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, session: Session) -> Start:
        """Where a session is written on from.

        Raises:
            InputError: The model writes nothing.
        """
        model, defaults, edits, remarks = session.model, defaults_of(session.model), list[Change](), list[str]()
        for edit in session.edits:  # as they are meant for a text that grows
            try:
                edits.append(standing(session.base.program, edit))
            except InputError as error:
                remarks.append(f"left out: {error}")
        own = steering(session.edits, session.base.program)
        others = tuple(edit for edit in edits if edit is not own)
        place = next((at for at, edit in enumerate(edits) if edit is own), len(edits))
        writer = Writer(model, defaults.settings, defaults.rules, session.encoding.ids, session.mask_read, others)
        whole = f"the model writes as it is, without what is {broken(session)}" if session.breaks else ""
        said = (defaults.note, whole, "the model writes with the edits of the explorer" if edits else "", *remarks)
        return cls(writer, others, place, tuple(filter(None, said)))

    def beside(self, edit: Add | None) -> tuple[Change, ...]:
        """All edits, with this one in its place."""
        return (*self.others[: self.place], *([] if edit is None else [edit]), *self.others[self.place :])


def prompt_of(writer: Writer, session: Session) -> tuple[int, ...]:
    """The tokens of a session that are written on from: as the writer reads them, where they are a text's alone."""
    target, ids = session.decoder_encoding, session.encoding.ids
    if target is not None:
        given = session.decoder_ids is not None
        return target.ids if given else writer.prompt(session.decoder_text, cut=session.cut).ids
    if session.ids is not None or session.mask_read is not None:
        return writer.unpadded(ids, session.mask_read)
    alone = not session.batch and session.framing == PLAIN and session.pair is None
    return writer.prompt(session.text, cut=session.cut).ids if alone else ids


def reading(session: Session, ids: tuple[int, ...], source: tuple[int, ...]) -> Session:
    """A session without edits and breaks on a text that was written: its words, where they are read as these tokens."""
    session = session.with_breaks() if session.breaks else session
    words, alone = token_texts(session.model, ids), replace(session, edits=(), targets=None)
    if not source:
        alone = replace(alone, batch=(), item=0, mask=None, pair=None, framing=PLAIN)
    bare = replace(alone, decoder_text="", decoder_ids=ids) if source else replace(alone, text="", ids=ids)
    if not source and session.model.config.pad_id in (ids[0], ids[-1]):  # it was written: it is no padding
        return replace(bare, mask=(1,) * len(ids))
    try:
        worded = bare.with_decoder_text("".join(words[1:])) if source else bare.with_text("".join(words))
    except InputError:
        return bare
    return worded if worded.predicted == ids else bare


def resteered(session: Session, edit: Add | None) -> Session:
    """A session with what is added to another text; without where its rows are not in this one."""
    try:
        return steered(session, edit)
    except InputError:
        return steered(session, None)


def suggested(session: Session, position: Position) -> str:
    """What might be added: the feature that one comes from, or a direction in the middle layer."""
    program, model, stop = session.base.program, session.model, position.stop
    if stop.endswith(FEATURES):
        return f"{stop}[:, {position.place.column}] += 4"
    layers = [name for name in program.aliases if LAYER_OUTPUT.fullmatch(name)]
    words = session.text.split()
    if not layers or len(words) < 2:
        return ""
    pair = PAIR if all(map(model.knows, PAIR)) else (words[0], words[-1])
    return f"{layers[len(layers) // 2]} += 0.5*direction('{pair[0]}', '{pair[1]}')".replace("''", "'")


def read_addition(session: Session, text: str) -> Callable[[Report], Add | None]:
    """What makes what is to be added, on the worker; nothing where nothing is written.

    Raises:
        InputError: It is not added, or the model has no such step; of what is made, that its values do not fit.
    """
    model, base = session.model, session.base
    if not text.strip():
        return lambda _: None
    typed = written(base.program, text)
    if typed.operation not in ("+=", "-=") or typed.place.name in base.program.weights:
        raise InputError("a slider moves what is added to a step: write STEP += …")
    typed.place.placed(base.program, base.givens)

    def make(report: Report) -> Add:
        change = typed.change(model, report=report).placed(base.program, base.givens)
        if not isinstance(change, Add):
            raise TypeError(change)
        return change

    if not typed.runs:
        make(silent)  # else its mistakes are said once it is made
    return make
