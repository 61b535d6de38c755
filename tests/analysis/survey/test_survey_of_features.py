"""Features over many texts: how strong and how frequent they are, against their steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.survey.measures import Asked, Item, check_asked, survey, unit_of
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.analysis.survey.table import Origin, examples, marked, rows
from tui_transformer.errors import InputError
from tui_transformer.features.dictionary import Features
from tui_transformer.model import Model
from tui_transformer.text.encoding import Token

DICTIONARIES = Path(__file__).parents[2] / "features"


def test_features_are_strong_and_frequent_as_their_steps_say():
    model = Model.load("decoder", device="cpu", d_model=32, heads=4, dtype="float64")
    with pytest.raises(InputError, match="decoder has no features: name a dictionary with --features"):
        check_asked(model, Asked(("features",)))
    model = model.with_features(Features.load(DICTIONARIES / "saelens-topk"), "decoder.0.output")
    check_asked(model, Asked(("features",)))
    texts = ("the waves crashed", "the shore")
    items = [Item(number, Source("a.txt", number + 1, text)) for number, text in enumerate(texts)]
    sums = survey(model, items, Asked(("features",), top=2))
    values = [model.trace(text)["decoder.0.output.features"] for text in texts]
    found = {(row.measure, row.feature): row for row in rows(sums, Origin("decoder"))}
    assert {(row.part, row.layer, row.head, row.neuron) for row in found.values()} == {
        ("decoder.0.output", 0, None, None)
    }
    for feature in range(96):
        strong, often = (found[name, feature] for name in ("features", "features:frequency"))
        assert strong.mean == pytest.approx(np.mean([each[:, feature].mean() for each in values]), abs=1e-12)
        assert often.mean == pytest.approx(np.mean([(each[:, feature] != 0).mean() for each in values]), abs=1e-12)
    shown = list(examples(sums, Origin("decoder")))
    assert {example.measure for example in shown} == {"features"}
    for example in shown:
        own = values[example.line - 1][:, example.feature]
        assert (example.value, example.position) == (own.max(), int(own.argmax()))
        assert example.value > 0
        assert example.marked == ""
    for example in examples(sums, Origin("decoder"), model):
        words = texts[example.line - 1].split()
        words[example.position] = f"«{words[example.position]}»"
        assert example.marked == " ".join(words)
    assert unit_of("features:frequency") == ""


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
    [
        ("the cat sat", 3, 7, "the «cat» sat"),
        ("cats", 0, 3, "«cat»s"),
        ("uncat", 2, 5, "un«cat»"),
        ("cat", 3, 3, ""),
        ("a  b", 1, 2, "a« » b"),
        ("y" * 50 + "cat", 50, 53, "… " + "y" * 40 + "«cat»"),
        ("x " * 40 + "cat" + " y" * 40, 80, 83, "… " + "x " * 19 + "«cat»" + " y" * 14 + " …"),
        ("one\ncat\ntwo", 4, 7, "one «cat» two"),
    ],
)
def test_a_token_is_marked_in_its_text(text: str, start: int, end: int, wanted: str) -> None:
    assert marked(text, Token(0, "", start, end)) == wanted
