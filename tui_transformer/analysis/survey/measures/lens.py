"""Logit-lens depth: after how many layers the lens's first choice is, and stays, the model's own answer.

For every token, depth is the smallest number of layers l such that after l, l + 1, … L layers the most probable word of
softmax(head(norm(x))) is the same as after all L (nostalgebraist 2020; the last place where it changes: Geva et al.
2022, "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space", §5). 0: the
embedding already spells it; L: the last layer alone does. `lens:agreement` is the share of tokens at which the first
choice behind a layer is the model's answer; layer −1 is the embedding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.analysis.effects import counted_positions
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.survey.measures.measure import Measure
from tui_transformer.analysis.survey.reading import MODEL, WHOLE, Place, Reading, Text

PART = "logit lens"


def _readings(text: Text) -> Iterator[Reading]:
    lens, positions = lens_of(text.trace.program), counted_positions(text.trace)
    words = np.stack([lens.spell(text.trace, depth, positions).words[:, 0] for depth in lens.depths])
    same = words == words[-1]  # depths × tokens
    stays = np.logical_and.accumulate(same[::-1])[::-1]
    depth = (~stays).sum(axis=0)[None].astype(np.float64)
    yield Reading.of_tokens(Place(PART, WHOLE, "lens:depth", MODEL), depth, np.asarray(positions))
    for at, place in enumerate(lens.depths):
        if text.covers(place.layer):
            share = same[at][None].astype(np.float64)
            yield Reading.of_tokens(Place(PART, place.layer, "lens:agreement", MODEL), share, np.asarray(positions))


LENS = Measure(
    "lens",
    "layers after which the logit lens's first choice stays the answer",
    "layers",
    _readings,
    ("lens:agreement",),
)
