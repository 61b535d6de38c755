"""Effects of ablation: what the answer of the model loses without each head, as `tui-transformer ablate` shows it.

`divergence` is the Kullback–Leibler divergence in nats from the answer before, `change` the change of ln p of the most
likely token; a model without a vocabulary head has `relative`, ‖x' − x‖ ÷ ‖x‖ (Michel et al. 2019; see `effects.py`).
Where a metric is asked for (`analysis/metrics.py`) it is how far that moves instead: `ablation:difference`; the loss
without a token is that of the text itself, over all its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.effects import answer_positions, effects
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.survey.measures.measure import Measure
from tui_transformer.analysis.survey.reading import Place, Reading, Text
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.targets import Target
from tui_transformer.model.targets import default_targets

FIELDS = {field: field for field in ("divergence", "change", "relative")}
"""Of an effect, and what its row is called."""


def _zero(text: Text) -> Iterable[Reading]:
    return _readings(text, "ablation", mean=False)


def _mean(text: Text) -> Iterable[Reading]:
    return _readings(text, "ablation-mean", mean=True)


def _readings(text: Text, name: str, *, mean: bool) -> Iterator[Reading]:
    positions, metric = answer_positions(text.trace, folder=text.model.folder), None
    if text.metric is not None:
        targets = _targets(text) if text.metric == ("loss", ()) else ()
        if targets and set(targets) == {NOT_COUNTED}:
            return  # nothing follows a single token
        metric = Metric(*text.metric, targets)
    for step in text.attentions:
        measured = effects(text.trace, _heads(step), mean=mean, positions=positions, metric=metric)
        of_heads = [effect for _, effect in measured]
        for field, row in FIELDS.items() if metric is None else {"change": metric.name}.items():
            if getattr(of_heads[0], field) is not None:
                values = np.array([float(getattr(effect, field)) for effect in of_heads])
                at = np.full(len(values), positions[-1])
                place = Place(step.group, step.layer, f"{name}:{row}")
                yield Reading(place, values, np.abs(values), at)


def _targets(text: Text) -> tuple[int, ...]:
    """The next tokens of the text itself, or the tokens where the model predicts these."""
    givens = text.trace.givens
    ids = givens.get("decoder.input.ids", givens["input.ids"])[0].tolist()
    return default_targets(text.trace.program, ids)


def _heads(step: Attention) -> Iterator[Target]:
    sublayer = step.name.rpartition(".")[0]
    return (Target("head", sublayer, head) for head in range(step.heads))


PLAIN = tuple(f"{name}:{row}" for name in ("ablation", "ablation-mean") for row in ("relative", "logit", "difference"))
ABLATION = (
    Measure("ablation", "effect on the answer of setting the head to 0", "nats", _zero, PLAIN),
    Measure("ablation-mean", "the same, set to its mean over the positions", "nats", _mean, PLAIN),
)
