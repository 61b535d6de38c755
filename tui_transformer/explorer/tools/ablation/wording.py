"""Words about an ablation: what is set, where the answer is read, and what becomes of it."""

from __future__ import annotations

from tui_transformer.analysis.effects import Effect, answer_step
from tui_transformer.engine.targets import Target
from tui_transformer.explorer.tools.ablation.answer import position_text, signed
from tui_transformer.explorer.tools.ablation.search import Search
from tui_transformer.explorer.tools.ablation.table import number, share
from tui_transformer.session.answer_summary import metric_said, on_targets, percent
from tui_transformer.session.edit_format import words


def title(search: Search, *, reverse: bool) -> str:
    """The targets, and the order."""
    order = "smallest effect first" if reverse else "largest effect first"
    set_to = "set to its mean over the positions" if search.mean else "set to 0"
    return f"Ablate · {search.scope.title} · each alone {set_to} · {order}"


def where(search: Search) -> str:
    """Where the answer is read, and what it is."""
    positions = search.positions
    if not search.in_words:
        return f"change of {answer_step(search.trace)}"
    if search.measure is not None:
        return _metric(search)
    if len(positions) > 1:
        return f"answers at positions {positions.start} to {positions.stop - 1}"
    likely = "".join(f": {guess}" for guess in search.known.before[:1])
    return f"answer at {position_text(search.session, positions.start)}{likely}"


def _metric(search: Search) -> str:
    """The metric, its value without an ablation, and where."""
    known = next(iter(search.known.effects.values()), None)
    own = "" if known is None or known.value is None else f" {number(known.value - (known.change or 0.0))} as it is"
    said = f"{metric_said(search.session)}{own}"
    if on_targets(search.measure):
        return said
    positions = search.positions
    many = f"positions {positions.start} to {positions.stop - 1}"
    return f"{said} at {position_text(search.session, positions.start) if len(positions) == 1 else many}"


def progress(search: Search, left: int) -> str:
    """How many are done, where so many are left."""
    return f"{len(search.targets) - left:,} of {len(search.targets):,} {search.scope.kind}s"


def edited(search: Search, target: Target) -> str:
    """The edits of a target, in words."""
    return ", ".join(words(edit, search.program) for edit in target.edits(search.program, mean=search.mean))


def change(search: Search, effect: Effect) -> str:
    """Effect on the answer, in words."""
    if effect.value is not None and effect.change is not None:
        was = number(effect.value - effect.change)
        return f"{metric_said(search.session)} {was} → {number(effect.value)}   change {signed(effect.change, 4)}"
    if effect.change is None or effect.divergence is None:
        return f"relative change {number(effect.size)}"
    text = f"change of ln p {signed(effect.change, 4)}   divergence {effect.divergence:.4g} nats"
    likely = next(iter(search.known.before), None)
    if likely is None:
        return text
    after = percent(min(likely.share * (1 + share(effect.change)), 1.0))
    return f"p({likely.name}) {percent(likely.share)} → {after}   {text}"
