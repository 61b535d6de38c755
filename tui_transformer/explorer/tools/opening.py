"""Every tool by its name, and how it is opened; a tool is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tui_transformer.explorer.shell.port import Port
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE

if TYPE_CHECKING:
    from tui_transformer.survey.results import Results


def _ablate_here(kind: str, *, mean: bool) -> Callable[[Port], None]:
    def ablate(port: Port) -> None:
        from tui_transformer.explorer.tools.ablation import perform

        perform.ablate(port, kind, mean=mean)

    return ablate


def _ablation(port: Port) -> None:
    from tui_transformer.explorer.tools.ablation import screen

    screen.open_from(port)


def _arcs(port: Port) -> None:
    from tui_transformer.explorer.tools.arcs import screen

    screen.open_from(port)


def _breaks(port: Port) -> None:
    from tui_transformer.explorer.tools.breaks import screen

    screen.open_from(port)


def _checkpoints(port: Port) -> None:
    from tui_transformer.explorer.tools.checkpoints import screen

    screen.open_from(port)


def _circuits(port: Port) -> None:
    from tui_transformer.explorer.tools.circuits import screen

    screen.open_from(port)


def _compare(port: Port) -> None:
    from tui_transformer.explorer.tools.compare import screen

    screen.open_from(port)


def _cuts(port: Port) -> None:
    from tui_transformer.explorer.tools.cuts import screen

    screen.open_from(port)


def _exercises(port: Port) -> None:
    from tui_transformer.explorer.tools.exercises import screen

    screen.open_from(port)


def _generate(port: Port) -> None:
    from tui_transformer.explorer.tools.generate import screen

    screen.open_from(port)


def _heads(port: Port) -> None:
    from tui_transformer.explorer.tools.heads import screen

    screen.open_from(port)


def _inputs(port: Port) -> None:
    from tui_transformer.explorer.tools.inputs import screen

    screen.open_from(port)


def _lens(port: Port) -> None:
    from tui_transformer.explorer.tools.lens import screen

    screen.open_from(port)


def _links(port: Port) -> None:
    from tui_transformer.explorer.tools.links import screen

    screen.open_from(port)


def _draw_again(port: Port) -> None:
    """Random weights from the next seed."""
    session, model = port.session, port.session.model
    if model.folder is not None or model.seed is None:
        port.say("these weights were learned: only random ones are drawn again")
        return
    seed = model.seed + 1

    def done(changed: Session) -> None:
        port.change(changed)
        port.say(port.hint(f"drawn again from seed {seed}: {{undo}} takes it back"))

    port.ask("draw", AT_ONCE + 1, lambda _: session.with_model(model.changed(seed=seed)), done)


def _item(by: int) -> Callable[[Port], None]:
    """Another sentence of the batch, going round."""

    def other(port: Port) -> None:
        session = port.session
        if not session.batch:
            port.say("one sentence is open: begin with several, as --text A --text B")
            return
        port.change(session.with_batch(session.batch, (session.item + by) % len(session.batch)))

    return other


def _measure(port: Port) -> None:
    from tui_transformer.explorer.tools.measure import screen

    screen.open_from(port)


def _nearest(port: Port) -> None:
    from tui_transformer.explorer.tools.nearest import screen

    screen.open_from(port)


def _open(port: Port) -> None:
    from tui_transformer.explorer.tools.open import screen

    screen.open_from(port)


def _patch(port: Port) -> None:
    from tui_transformer.explorer.tools.patch import screen

    screen.open_from(port)


def _patching(port: Port) -> None:
    from tui_transformer.explorer.tools.patching import screen

    screen.open_from(port)


def _rollout(port: Port) -> None:
    from tui_transformer.explorer.tools.rollout import screen

    screen.open_from(port)


def _score(port: Port) -> None:
    from tui_transformer.explorer.tools.score import screen

    screen.open_from(port)


def _softmax(port: Port) -> None:
    from tui_transformer.explorer.tools.softmax import screen

    screen.open_from(port)


def _settings(port: Port) -> None:
    from tui_transformer.explorer.tools.settings import screen

    screen.open_from(port)


def _similar(port: Port) -> None:
    from tui_transformer.explorer.tools.similar import screen

    screen.open_from(port)


def _survey(port: Port) -> None:
    from tui_transformer.explorer.tools.survey import screen

    screen.open_from(port)


def open_survey(results: Results, port: Port) -> None:
    """Show the results of a survey."""
    from tui_transformer.explorer.tools.survey import screen

    screen.open_results(port, results)


def _targets(port: Port) -> None:
    from tui_transformer.explorer.tools.targets import screen

    screen.open_from(port)


def _terms(port: Port) -> None:
    from tui_transformer.explorer.tools.terms import screen

    screen.open_from(port)


def _train(port: Port) -> None:
    from tui_transformer.explorer.tools.train import screen

    screen.open_from(port)


def _vocabulary(port: Port) -> None:
    from tui_transformer.explorer.tools.open import vocabulary

    vocabulary.open_from(port)


def _commands(port: Port) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """Models, tours and settings, each with what is known of it and how it is opened."""
    from tui_transformer.explorer.tools.open.choices import SIZES, at_once
    from tui_transformer.explorer.tools.open.screen import choose
    from tui_transformer.explorer.tools.settings.fields import COLUMNS

    for choice in at_once((), sizes=port.hint(SIZES)):
        title = f"Tour: {choice.says}" if choice.kind == "tour" else f"Open {choice.name} ({choice.source})"
        yield title, choice.name if choice.kind == "tour" else choice.says, partial(choose, port, choice)
    for field in (field for column in COLUMNS for field in column):
        yield f"Setting: {field.label.strip()}", field.help, partial(_settings, port)


COMMANDS: Callable[[Port], Iterator[tuple[str, str, Callable[[], None]]]] = _commands
"""Commands of the palette that are no actions."""

TOOLS: Mapping[str, Callable[[Port], None]] = {
    "ablate-head": _ablate_here("head", mean=False),
    "ablate-head-mean": _ablate_here("head", mean=True),
    "ablate-position": _ablate_here("position", mean=False),
    "ablate-position-mean": _ablate_here("position", mean=True),
    "ablation": _ablation,
    "arcs": _arcs,
    "breaks": _breaks,
    "checkpoints": _checkpoints,
    "circuits": _circuits,
    "compare": _compare,
    "cuts": _cuts,
    "draw-again": _draw_again,
    "exercises": _exercises,
    "generate": _generate,
    "heads": _heads,
    "inputs": _inputs,
    "item-back": _item(-1),
    "item-next": _item(1),
    "lens": _lens,
    "links": _links,
    "measure": _measure,
    "nearest": _nearest,
    "open": _open,
    "patch": _patch,
    "patching": _patching,
    "rollout": _rollout,
    "score": _score,
    "settings": _settings,
    "similar": _similar,
    "softmax": _softmax,
    "survey": _survey,
    "targets": _targets,
    "terms": _terms,
    "train": _train,
    "vocabulary": _vocabulary,
}
"""How each tool is opened from what it is given."""
