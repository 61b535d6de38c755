"""Offers to compare with: another sentence, the state before the edits, another checkpoint, precision or device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tui_transformer.analysis.attentions import Report
from tui_transformer.engine.backend import DTYPES
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import COMPARE
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.prompt import PickScreen, asking
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.model import Model
from tui_transformer.records import dataclass, replace
from tui_transformer.session.edit_format import active
from tui_transformer.session.overlay import Dumped, of_dump
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import BEFORE, Overlay
from tui_transformer.text.display import visible


@dataclass(frozen=True)
class Offer:
    """One thing to compare with.

    Attributes:
        build: The answer (or "") → what is beside. Called on the worker, as a model may have to be loaded; told what
            says how far it is.
        ask: What has to be asked first; "" for nothing.
        value: What is in the input at first.
        kind: As what a menu asks for it; "" for what only the list has.
    """

    title: str
    detail: str
    build: Callable[[str, Report], Overlay | Dumped]
    ask: str = ""
    value: str = ""
    kind: str = ""


def open_from(port: Port) -> None:
    """Choose what to compare with, and compare; where something is compared, end that."""
    if _ended(port):
        return
    choices = {offer.title: offer for offer in offers(port.session)}
    keys = "{overlay} shows the difference, {compare.first} the first that differs"
    note = port.hint(f"Every step is then shown beside the other's; {keys}.")
    details = {title: offer.detail for title, offer in choices.items()}
    screen = PickScreen("Compare with", details, note, width=22, shown=COMPARE)
    port.open(screen, lambda title: None if title is None else compare(port, choices[title]))


def compare_with(port: Port, kind: str) -> None:
    """Compare with what is of this kind; another checkpoint, where something is compared, ends that."""
    if kind == "checkpoint" and _ended(port):
        return
    compare(port, next(offer for offer in offers(port.session) if offer.kind == kind))


def _ended(port: Port) -> bool:
    """End a comparison; whether there was one."""
    compared = port.session.overlay.kind == "trace"
    if compared:
        port.change(port.session.with_overlay(Overlay()))
    return compared


def compare(port: Port, offer: Offer, answer: str | None = None) -> None:
    """Show another trace beside the one that is explored, once what it needs is asked for; a dump where it is wrong."""
    if offer.ask and answer is None:
        port.open(*asking(offer.ask, str, partial(compare, port, offer), value=offer.value, hint=offer.detail))
        return
    session = port.session

    def work(task: Task) -> tuple[Session, Overlay | Dumped]:
        built = offer.build(answer or "", task.report)
        return session.with_overlay(built.overlay if isinstance(built, Dumped) else built), built

    def done(made: tuple[Session, Overlay | Dumped]) -> None:
        changed, built = made
        port.change(changed, built.at if isinstance(built, Dumped) else None)
        if isinstance(built, Dumped):
            port.say(visible(built.says))

    ask_of_now(port, "other", work, done)


def offers(session: Session) -> Iterator[Offer]:
    """What a session can be compared with."""
    model = session.model
    if model.config.vocab_size:
        yield Offer(
            "another sentence",
            "the same model reads both",
            lambda text, _: Overlay("trace", f"“{text.strip()}”", text=text),
            "Sentence to compare with",
            session.sentence,
            "sentence",
        )
    if session.edits:
        yield Offer("before the edits", active(session.edits, session.base.program), lambda *_: BEFORE)
    yield Offer(
        "another checkpoint",
        "the same sentence, other weights",
        lambda where, _: _of_checkpoint(session, where),
        "Checkpoint to compare with",
        str(model.folder or ""),
        "checkpoint",
    )
    build = partial(of_dump, session)
    yield Offer("a dump", "what another program computed", build, "Dump to compare with", kind="dump")
    if model.folder is None and model.seed is not None:
        other = model.seed + 1
        detail = "the same sizes, other random weights"
        yield Offer(f"seed {other}", detail, lambda *_: _other(model, f"seed {other}", seed=other))
    dtype = next(name for name in DTYPES if name != str(model.backend.dtype))
    detail = f"the same in {dtype}: what rounding changes"
    yield Offer(dtype, detail, lambda *_: _other(model, dtype, dtype=dtype), kind="precision")
    device = "cpu" if model.backend.device == "gpu" else "gpu"
    name = device.upper()
    yield Offer(f"the {name}", "the same on the other device", lambda *_: _other(model, name, device=device))


def _of_checkpoint(session: Session, where: str) -> Overlay:
    """A checkpoint of the same family, in the same precision and on the same device."""
    backend, where = session.model.backend, where.strip()
    if not where:
        raise InputError("give a checkpoint's folder, or the name of a model")
    other = Model.load(where, device=backend.device, dtype=str(backend.dtype))
    if other.family.model_type != session.model.family.model_type:
        kind = other.family.model_type
        raise InputError(f"{where} is a {kind} model: only one of the same family has the same steps")
    return Overlay("trace", Path(where).name or where, model=other)


def _other(model: Model, label: str, **changes: Any) -> Overlay:
    return Overlay("trace", label, model=replace(model.changed(**changes), name=model.name))
