"""What cannot be done of what is explored, or where one is, and why: not in the line of keys, grey in the menus."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tui_transformer.analysis.attentions import attentions
from tui_transformer.explorer.shell.keys import MENUS, Action
from tui_transformer.explorer.shell.menu import Entry
from tui_transformer.explorer.tools.opening import missing
from tui_transformer.generation.cache import writes
from tui_transformer.session.session import Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.tour_stop import tour_of
from tui_transformer.views.whole import stacks_of

NO_NUMBERS = "there are no numbers here"


def refused(session: Session, stop: str, scene: StepScene | None) -> Mapping[str, str]:
    """The reason of each action, by name, that would only say that it cannot be done."""
    program = session.trace.program
    step = program.by_name.get(stop)
    weights = step is not None and any(name in program.weights for name in step.inputs)
    anywhere = session.cache.compared.made("refused", lambda: refused_anywhere(session))
    wordless = "vocabulary.open" in anywhere
    useless = {
        "head.next": "this step has no heads" if scene is None or scene.view.heads < 2 else "",
        "layer.next": "this model has one layer" if sum(map(len, stacks_of(program))) < 2 else "",
        "cell.edit": NO_NUMBERS if scene is None or scene.view.integer else "",
        "predict": NO_NUMBERS if scene is None else "",
        "export": NO_NUMBERS if scene is None and wordless else "",
        "chart.next": NO_NUMBERS if scene is None else "",
        "weights": "" if weights else "this step has no weights",
        "patch": NO_NUMBERS if scene is None else "this model has no words" if wordless else "",
        "overlay": "nothing stands beside: no gradient, no other trace" if session.overlay.kind == "nothing" else "",
        "compare.first": "" if session.overlay.kind == "trace" else "nothing is compared",
    }
    return {name: reason for name, reason in useless.items() if reason} | anywhere


def refused_anywhere(session: Session) -> dict[str, str]:
    """Those that would be refused at every step of what is explored: neither palette nor help names them."""
    program, model = session.trace.program, session.model
    reads, one = bool(model.config.vocab_size), "one sentence is open"
    loss, unread = missing("targets", session), "this model reads no sentence"
    writing = reads and writes(model.program(1, 1))
    useless = {
        "sentence.edit": "" if reads else unread,
        "compare.sentence": "" if reads else unread,
        "target.edit": "this model reads one sentence" if session.decoder_encoding is None else "",
        "vocabulary.open": "this model has no vocabulary" if model.vocabulary is None else "",
        "tour": "no tour leads through this model" if tour_of(session) is None else "",
        "backward": loss,
        "targets": loss,
        "generate": "" if writing else "an encoder writes nothing" if reads else unread,
        "lens": "" if program.logits else "this model has no logits of words",
        "heads.all": "" if attentions(program) else "this model has no attention",
        "item.next": "" if session.batch else one,
        "item.back": "" if session.batch else one,
    }
    return {name: reason for name, reason in useless.items() if reason}


def entries(menu: str, session: Session, stop: str, scene: StepScene | None, actions: Sequence[Action]) -> list[Entry]:
    """The entries of a menu, each with its title and why it cannot be done now; `{undo}` in a reason is a key."""
    reasons, by_id = refused(session, stop, scene), {action.id: action for action in actions}

    def reason(action: Action) -> str:
        tool = re.fullmatch(r"open\('([\w-]+)'\)", action.action)  # a tool may need what the model has not
        return reasons.get(action.id, "") or (missing(tool[1], session) if tool else "")

    chosen = ((letter, by_id[meaning]) for letter, meaning in MENUS[menu].entries.items())
    return [Entry(letter, action.id, action.title, reason(action)) for letter, action in chosen]
