"""Every tool by its name: what it needs of what is explored, and where it is; a tool is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from tui_transformer.analysis.attentions import SELF, groups
from tui_transformer.analysis.labelled import stream
from tui_transformer.analysis.similar import POOLED
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.program import LABEL
from tui_transformer.engine.targets import KINDS
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.session.session import Session

if TYPE_CHECKING:
    from textual.screen import Screen


def _last_axis(session: Session) -> str:
    """What the columns of the logits are; "" where there are none."""
    program = session.trace.program
    return program.axes(LOGITS)[-1].name if LOGITS in program.by_name else ""


HAS_LOSS = attrgetter("has_loss")
ATTENTION = {"this model has no attention": lambda session: groups(session.trace.program)}

NEEDS: Mapping[str, Mapping[str, Callable[[Session], object]]] = {
    "ablation": {
        "this model has nothing that can be ablated": lambda session: any(
            kind.places(session.trace.program) for kind in KINDS.values()
        )
    },
    "arcs": ATTENTION,
    "compare-sentence": {"this model reads no sentence": lambda session: session.model.config.vocab_size},
    "cuts": {"there is no sentence to cut: write one": lambda session: session.encoding.text.strip()},
    "graph": {"this model has no logits: a graph leads back from these": _last_axis},
    "heads": ATTENTION,
    "inputs": {
        "this model has no logits of words, or something is broken: there is nothing to differentiate": HAS_LOSS
    },
    "links": ATTENTION,
    "patching": {
        "this model has no logits of words: tables of patches are measured by these": lambda session: (
            session.trace.program.logits and session.model.config.vocab_size
        )
    },
    "probes": {
        "this model reads no texts: probes are fitted to some": lambda session: session.model.vocabulary is not None,
        "this model has no layers that could be read": lambda session: stream(session.base.program),
    },
    "rollout": {
        "this model has no self-attention": lambda session: any(
            group.endswith(SELF.replace("_", "-")) for group in groups(session.trace.program)
        )
    },
    "score": {
        "this model gives words no probability: there is nothing to score": lambda session: (
            _last_axis(session) not in ("", LABEL)
        )
    },
    "similar": {
        "this model makes no vector of a sentence: open a folder of sentence-transformers": lambda session: (
            POOLED in session.trace.program.by_name
        )
    },
    "targets": {
        "something is broken on purpose: {breaks} mends it, then there are gradients": lambda session: (
            not session.breaks
        ),
        "this model has no logits of words: there is no loss, and no gradients": HAS_LOSS,
    },
    "terms": {
        "the model has no logits of words: attribution reads these": lambda session: _last_axis(session) == "vocabulary"
    },
    "vocabulary": {
        "this model reads no words": lambda session: (
            session.model.vocabulary is not None or session.model.config.vocab_size
        )
    },
}
"""By the name of a tool what is said where something is missing that it needs, `{undo}` in it being a key, and whether
that is there; what it cannot do besides, it says when it is opened."""


def missing(name: str, session: Session) -> str:
    """What a tool needs and is not there; "" where nothing is missing."""
    return next((reason for reason, is_there in NEEDS.get(name, {}).items() if not is_there(session)), "")


def open_tool(name: str, port: Port) -> None:
    """Open a tool, or say what it needs."""
    if needed := missing(name, port.session):
        port.say(port.hint(needed))
        return
    try:
        _open(name, port)
    except InputError as error:
        port.say(str(error))


def _open(name: str, port: Port) -> None:
    """A tool that is a screen and asks for nothing before, or what else one begins with."""
    Tool: Callable[[Port], Screen[None]]
    match name:
        case "ablation":
            from tui_transformer.explorer.tools.ablation import AblateScreen as Tool
        case "arcs":
            from tui_transformer.explorer.tools.links import ArcsScreen as Tool
        case "breaks":
            from tui_transformer.explorer.tools.breaks.screen import BreaksScreen as Tool
        case "circuits":
            from tui_transformer.explorer.tools.circuits import CircuitsScreen as Tool
        case "cuts":
            from tui_transformer.explorer.tools.cuts import CutsScreen as Tool
        case "exercises":
            from tui_transformer.explorer.tools.exercises import ExercisesScreen as Tool
        case "graph":
            from tui_transformer.explorer.tools.graph import GraphScreen as Tool
        case "heads":
            from tui_transformer.explorer.tools.heads import HeadsScreen as Tool
        case "lens":
            from tui_transformer.explorer.tools.lens import LensScreen as Tool
        case "links":
            from tui_transformer.explorer.tools.links import LinksScreen as Tool
        case "patching":
            from tui_transformer.explorer.tools.patching import PatchingScreen as Tool
        case "poster":
            from tui_transformer.explorer.tools.poster import PosterScreen as Tool
        case "probes":
            from tui_transformer.explorer.tools.probes import ProbesScreen as Tool
        case "rollout":
            from tui_transformer.explorer.tools.rollout import RolloutScreen as Tool
        case "similar":
            from tui_transformer.explorer.tools.similar import SimilarScreen as Tool
        case "terms":
            from tui_transformer.explorer.tools.attribution import TermsScreen as Tool
        case _:
            _begin(name, port)
            return
    port.open(Tool(port))


def _begin(name: str, port: Port) -> None:
    match name:
        case "checkpoints":
            from tui_transformer.explorer.tools.checkpoints import open_from
        case "compare":
            from tui_transformer.explorer.tools.compare import open_from
        case "features":
            from tui_transformer.explorer.tools.features import open_from
        case "generate":
            from tui_transformer.explorer.tools.generate.screen import open_from
        case "inputs":
            from tui_transformer.explorer.tools.attribution import open_inputs as open_from
        case "measure":
            from tui_transformer.explorer.tools.measure import open_measure as open_from
        case "nearest":
            from tui_transformer.explorer.tools.similar import open_nearest as open_from
        case "open":
            from tui_transformer.explorer.tools.open import open_from
        case "patch":
            from tui_transformer.explorer.tools.patching import open_patch as open_from
        case "score":
            from tui_transformer.explorer.tools.score import open_from
        case "settings":
            from tui_transformer.explorer.tools.settings import open_from
        case "softmax":
            from tui_transformer.explorer.tools.softmax import open_from
        case "survey":
            from tui_transformer.explorer.tools.survey import open_from
        case "targets":
            from tui_transformer.explorer.tools.measure import open_targets as open_from
        case "train":
            from tui_transformer.explorer.tools.train.screen import open_from
        case "vocabulary":
            from tui_transformer.explorer.tools.open import open_vocabulary as open_from
        case _:
            _act(name, port)
            return
    open_from(port)


def _act(name: str, port: Port) -> None:
    """A tool without a screen of its own."""
    what, kind, *mean = name.split("-")
    if what == "ablate":
        from tui_transformer.explorer.tools.ablation import ablate

        ablate(port, kind, mean=bool(mean))
    elif what == "compare":
        from tui_transformer.explorer.tools.compare import compare_with

        compare_with(port, kind)
    elif what == "item":
        session, by = port.session, 1 if kind == "next" else -1
        if not session.batch:
            raise InputError("one sentence is open: begin with several, as --text A --text B")
        port.change(session.with_batch(session.batch, (session.item + by) % len(session.batch)))
    else:  # "draw-again"
        session, model = port.session, port.session.model
        if model.folder is not None or model.seed is None:
            raise InputError("these weights were learned: only random ones are drawn again")
        seed = model.seed + 1

        def done(changed: Session) -> None:
            port.change(changed)
            port.say(port.hint(f"drawn again from seed {seed}: {{undo}} takes it back"))

        ask_of_now(port, "draw", lambda _: session.with_model(model.changed(seed=seed)), done)


def palette_commands(port: Port) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Models, tours and settings for the palette, each with what is known of it and how it is opened."""
    from tui_transformer.explorer.tools.open import SIZES, at_once, choose
    from tui_transformer.explorer.tools.settings import COLUMNS

    for choice in at_once((), sizes=port.hint(SIZES)):
        title = f"Tour: {choice.says}" if choice.kind == "tour" else f"Open {choice.name} ({choice.source})"
        yield title, choice.name if choice.kind == "tour" else choice.says, partial(choose, port, choice)
    for field in (field for column in COLUMNS for field in column):
        yield f"Setting: {field.label.strip()}", field.help, partial(open_tool, "settings", port)
