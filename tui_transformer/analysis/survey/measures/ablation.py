"""Effects of ablation: what the answer of the model loses without each head, as `tui-transformer ablate` shows it.

`divergence` is the Kullback–Leibler divergence in nats from the answer before, `change` the change of ln p of the most
likely token; a model without a vocabulary head has `relative`, ‖x' − x‖ ÷ ‖x‖ (Michel et al. 2019; see `effects.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tui_transformer.analysis.attentions import Attention
from tui_transformer.analysis.effects import answer_positions, effects
from tui_transformer.analysis.survey.measures.measure import Measure
from tui_transformer.analysis.survey.reading import Place, Reading, Text
from tui_transformer.engine.targets import Target

FIELDS = ("divergence", "change", "relative")


def _zero(text: Text) -> Iterable[Reading]:
    return _readings(text, "ablation", mean=False)


def _mean(text: Text) -> Iterable[Reading]:
    return _readings(text, "ablation-mean", mean=True)


def _readings(text: Text, name: str, *, mean: bool) -> Iterator[Reading]:
    positions = answer_positions(text.trace, folder=text.model.folder)
    for step in text.attentions:
        of_heads = [effect for _, effect in effects(text.trace, _heads(step), mean=mean, positions=positions)]
        for field in FIELDS:
            if getattr(of_heads[0], field) is not None:
                values = np.array([float(getattr(effect, field)) for effect in of_heads])
                at = np.full(len(values), positions[-1])
                place = Place(step.group, step.layer, f"{name}:{field}")
                yield Reading(place, values, np.abs(values), at)


def _heads(step: Attention) -> Iterator[Target]:
    sublayer = step.name.rpartition(".")[0]
    return (Target("head", sublayer, head) for head in range(step.heads))


RELATIVE = ("ablation:relative", "ablation-mean:relative")
ABLATION = (
    Measure("ablation", "effect on the answer of setting the head to 0", "nats", _zero, RELATIVE),
    Measure("ablation-mean", "the same, set to its mean over the positions", "nats", _mean, RELATIVE),
)
