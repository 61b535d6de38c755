"""The metric of a session: what its ablations and patches are measured by."""

from __future__ import annotations

from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.explorer.state.measure import Measure
from tui_transformer.explorer.state.session import Session

LOSS = "loss"


def measure_of(session: Session) -> Measure | None:
    """The metric that was chosen; None where none was, or the model has no logits of words."""
    return session.measure if session.trace.program.logits else None


def metric_of(session: Session) -> Metric | None:
    """The same as a metric. The loss without a token is on the targets of the session, which may be computed for it."""
    measure = measure_of(session)
    if measure is None:
        return None
    return Metric(measure.name, measure.tokens, session.loss_targets if on_targets(measure) else ())


def metric_said(session: Session) -> str:
    """The same in words; "" where nothing was chosen."""
    measure = measure_of(session)
    if measure is None:
        return ""
    return "loss on the targets" if on_targets(measure) else said(session, measure)


def said(session: Session, measure: Measure) -> str:
    """A metric of tokens in words: `logit of had less that of by`."""
    return METRICS[measure.name].description.format(*map(session.model.target_label, measure.tokens))


def on_targets(measure: Measure | None) -> bool:
    """Whether it is the loss on the targets: then it does not matter where the answer is read."""
    return measure is not None and measure.name == LOSS and not measure.tokens
