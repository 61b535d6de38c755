"""Features in the whole explorer: those of a token, their words and places in the text, and their steps."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from textual.widgets import Static

from tui_transformer.engine.changes import Scale
from tui_transformer.explorer.tools.features import FeaturesScreen
from tui_transformer.explorer.tools.graph import GraphScreen
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.features.dictionary import Features, own_dictionary
from tui_transformer.features.labels import read_labels
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.session.open_session import session_of
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import Place

AT, TEXT = "decoder.1.output", "Once there was a small girl called Mira, who lived by the sea"


async def opened(explorer: Explorer, token: int) -> FeaturesScreen:
    explorer.parts.port.visit(Position("decoder.1.feed_forward.residual", Place(0, token, 0)))
    await explorer.settled()
    open_tool("features", explorer.parts.port)
    return await explorer.front(FeaturesScreen, lambda screen: screen.found)


def known(token: int) -> tuple[list[int], np.ndarray]:
    """The active features of a token, the strongest first, and all values, from the dictionary alone."""
    model = Model.load("story", device="cpu")
    path = own_dictionary(model.folder)
    assert path is not None
    values = Features.load(path).encode(model.trace(TEXT)[AT])
    return [int(each) for each in np.argsort(-values[token]) if values[token, each]], values


async def test_the_features_of_a_token_are_those_of_the_dictionary_and_shade_the_text_at_every_size():
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        screen = await opened(explorer, 15)
        expected, values = known(15)
        assert [each.feature for each in screen.found.active.features] == expected
        np.testing.assert_allclose(screen.found.values, values[:, expected], rtol=1e-4, atol=1e-4)
        first = explorer.app.screen.query_one("#overview-detail", Static).render()
        places = np.count_nonzero(values[:, expected[0]])
        assert f"f{expected[0]} · " in str(first)
        assert f"active at {places} of {len(values)} tokens" in str(first)
        text = screen._text(screen.tokens(AT), 15)
        assert text.plain.startswith("Once there was a small girl called Mira, who lived by")
        shaded = {text.plain[span.start : span.end] for span in text.spans if "accent" in str(span.style)}
        assert len(shaded) <= places
        await explorer.press("right")
        await explorer.until(lambda: screen.found.active.token == 16)
        assert [each.feature for each in screen.found.active.features] == known(16)[0]
        await explorer.leave()
        await opened(explorer, 3)
        for size in (SMALL, (60, 20), (5, 3)):
            await explorer.resize(*size)


async def test_a_feature_is_a_step_that_is_gone_to_and_undone_and_what_was_changed_stays_changed():
    async with exploring(NARROW, model="story", text=TEXT) as explorer:
        screen = await opened(explorer, 9)
        feature = screen.found.active.features[1].feature
        await explorer.leave("down", "enter")
        position = explorer.parts.explored.position
        assert (position.stop, position.place.row, position.place.column) == (f"{AT}.features", 9, feature)
        await explorer.press("u")
        assert f"{AT}.features" not in explorer.parts.explored.session.trace.program.by_name
        # what was changed before stays changed
        await explorer.change(explorer.parts.explored.session.with_edits(Scale("decoder.0.feed_forward.output", 0)))
        await opened(explorer, 9)
        session = explorer.parts.explored.session
        plain, changed = (trace[AT] for trace in (session.base, session.trace))
        assert [edit.name for edit in session.edits] == ["decoder.0.feed_forward.output"]
        assert not np.allclose(plain, changed)


async def test_features_of_another_dictionary_are_not_called_as_those_that_come_with_the_model(tmp_path):
    own = own_dictionary(Model.load("story", device="cpu").folder)
    assert own is not None
    other = shutil.copytree(own, tmp_path / "other", ignore=shutil.ignore_patterns("labels.csv"))
    for features, called in ((own, True), (other, False)):
        async with exploring(WIDE, model="story", text=TEXT) as explorer:
            session = explorer.session
            await explorer.change(session.with_model(session.model.with_features(Features.load(features))))
            screen = await opened(explorer, 15)
            assert bool(screen.labels) is called
            label = read_labels(own / "labels.csv").get(screen.found.active.features[0].feature, "")
            assert label
            assert (label in explorer.text) is called
            await explorer.leave()
            await explorer.open("graph")
            assert isinstance(explorer.app.screen, GraphScreen)
            assert bool(explorer.app.screen.labels) is called


@pytest.mark.parametrize("depth", ["none", "standard", "256", "truecolor"])
async def test_tokens_where_a_feature_is_weak_are_marked_where_there_are_few_colours(depth, monkeypatch):
    monkeypatch.setattr(Surface, "of", lambda app: Surface(depth, app.current_theme.dark))
    async with exploring(MEDIUM, model="story", text=TEXT) as explorer:
        screen = await opened(explorer, 15)
        marks = [str(span.style) for span in screen._text(screen.tokens(AT), 15).spans]
        active = [mark for mark in marks if "reverse" not in mark]
        assert active
        assert {"underline" in mark for mark in active} == {depth != "truecolor"}
        assert {"accent" in mark for mark in active} == {depth != "none"}


DICTIONARIES = Path(__file__).parents[2] / "features"
READ = "decoder.0.output"


@cache
def with_features(name: str) -> Session:
    model = Model.load("decoder", d_model=32, heads=4, norm="pre", device="cpu")
    model = model.with_features(Features.load(DICTIONARIES / name), READ)
    return session_of(model, Reading("the waves crashed"), ModelOptions("decoder", device="cpu"))


@pytest.mark.parametrize("name", ["saelens-topk", "saelens-standard-layer-norm"])
async def test_every_step_of_features_is_shown(name: str) -> None:
    session = with_features(name)
    async with exploring(session=session) as explorer:
        async for _ in explorer.sizes(WIDE, NARROW):
            for stop in (each for each in session.stops if each.startswith(f"{READ}.")):
                await explorer.go(stop)
                assert stop in explorer.text
                if stop.endswith((".features", ".pre_activations")):
                    assert "f0 " in explorer.text


async def test_features_are_named_by_what_they_are_and_ablated_by_their_numbers() -> None:
    async with exploring(WIDE, session=with_features("saelens-topk")) as explorer:
        await explorer.press("A", "f", "f", "f", "f")
        await explorer.until(lambda: "96 of 96 features" in explorer.text)
        assert f"features of {READ}" in explorer.text
        table = explorer.text.partition("Ablate")[2]
        assert "feature " in table
        assert "head" not in table
        await explorer.press("escape")
        # the whole
        await explorer.go(f"{READ}.features")
        await explorer.press("0")
        assert "Features · layer 0" in explorer.text
        assert "Answer · layer" not in explorer.text
