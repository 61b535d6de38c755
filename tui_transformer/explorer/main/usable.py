"""Actions that would be refused now, and are therefore left out of the line of keys."""

from __future__ import annotations

from tui_transformer.analysis.attentions import attentions
from tui_transformer.explorer.main.scene import Scene
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.state.tours import tour_of


def refused(session: Session, stop: str, scene: Scene | None) -> frozenset[str]:
    """The actions, by name, that would only say why they cannot be done."""
    program, model = session.trace.program, session.model
    step = program.by_name.get(stop)
    layers = {each.layer for each in program.steps if each.layer.rpartition(".")[2].isdigit()}
    number = scene is not None and not scene.view.integer
    useless = {
        "head.next": scene is None or scene.view.heads < 2,
        "layer.next": len(layers) < 2,
        "sentence.edit": not model.config.vocab_size,
        "vocabulary.open": model.vocabulary is None,
        "tour": tour_of(session) is None,
        "backward": not session.has_loss,
        "generate": not program.logits or not model.config.vocab_size,
        "lens": not program.logits,
        "heads.all": not attentions(program),
        "cell.edit": not number,
        "predict": scene is None,
        "export": scene is None and session.model.vocabulary is None,
        "chart.next": scene is None,
        "weights": step is None or not any(name in program.weights for name in step.inputs),
        "patch": scene is None or session.model.vocabulary is None,
        "overlay": session.overlay.kind == "nothing",
    }
    return frozenset(name for name, holds in useless.items() if holds)
