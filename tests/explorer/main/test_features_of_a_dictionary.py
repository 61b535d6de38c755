"""A session of a model with features: steps have matrices, charts and cells; features are ablated one by one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from driving import NARROW, WIDE, exploring

from tui_transformer.features.dictionary import Features
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.session.open_session import session_of
from tui_transformer.session.session import Session

DICTIONARIES = Path(__file__).parents[2] / "features"
AT = "decoder.0.output"


@cache
def with_features(name: str) -> Session:
    model = Model.load("decoder", d_model=32, heads=4, norm="pre", device="cpu")
    model = model.with_features(Features.load(DICTIONARIES / name), AT)
    return session_of(model, Reading("the waves crashed"), ModelOptions("decoder", device="cpu"))


@pytest.mark.parametrize("name", ["saelens-topk", "saelens-standard-layer-norm"])
async def test_every_step_of_features_is_shown(name: str) -> None:
    session = with_features(name)
    async with exploring(session=session) as explorer:
        async for _ in explorer.sizes(WIDE, NARROW):
            for stop in (each for each in session.stops if each.startswith(f"{AT}.")):
                await explorer.go(stop)
                assert stop in explorer.text
                if stop.endswith((".features", ".pre_activations")):
                    assert "f0 " in explorer.text


async def test_features_are_named_by_what_they_are_and_ablated_by_their_numbers() -> None:
    async with exploring(WIDE, session=with_features("saelens-topk")) as explorer:
        await explorer.press("A", "f", "f", "f", "f")
        await explorer.until(lambda: "96 of 96 features" in explorer.text)
        assert f"features of {AT}" in explorer.text
        table = explorer.text.partition("Ablate")[2]
        assert "feature " in table
        assert "head" not in table
        await explorer.press("escape")
        # the whole
        await explorer.go(f"{AT}.features")
        await explorer.press("0")
        assert "Features · layer 0" in explorer.text
        assert "Answer · layer" not in explorer.text
