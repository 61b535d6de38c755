"""Results are kept under what they are of, as far as there is room: what is farthest from the position goes first."""

from __future__ import annotations

import numpy as np
import pytest
from driving import WIDE, exploring
from textual.geometry import Size

from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.scene import scene
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY
from tui_transformer.session.store import ENDLESS, Failed, Key, Reading, Store
from tui_transformer.session.view_state import GRADIENT, ViewState

PICTURE = np.zeros(100, np.uint8)


def kept(store: Store, *keys: Key) -> list[bool]:
    return [store.find(each) is not None for each in keys]


def test_what_is_far_from_the_position_or_of_another_session_goes_first() -> None:
    session, other = (open_session(ModelOptions("question"), None, None) for _ in range(2))
    store = Store(most_bytes=450)
    near, nearer, far = (Key(session, session.stops[place], "picture") for place in (3, 4, 15))
    elsewhere, here = (Key(each, session.stops[5], "picture") for each in (other, session))
    for each in (near, nearer, far, elsewhere, here):
        store.put(each, PICTURE.copy())
    store.used.clear()
    store.make_room(session, session.stops[5])
    assert kept(store, elsewhere, far, near, nearer, here) == [False, False, False, True, True]


def test_what_the_scene_is_made_of_stays_however_large_it_is() -> None:
    session = open_session(ModelOptions("question"), None, None)
    store, keys = Store(most_bytes=10), [Key(session, stop, "picture") for stop in session.stops[:5]]
    reading = Reading(store, here=True, most=ENDLESS)
    for each in keys:
        reading.get(*each, lambda: 10, lambda _: PICTURE.copy())
    store.make_room(session, session.stops[0])
    assert all(kept(store, *keys))


def test_what_costs_more_than_a_key_press_is_missing_and_what_fails_is_told_once() -> None:
    session = open_session(ModelOptions("question"), None, None)
    store, lost = Store(), InputError("a weight is lost")

    def fails(_: object) -> str:
        raise lost

    dear, wrong = Key(session, "a", "dear"), Key(session, "a", "wrong")
    reading = Reading(store, here=True)
    assert reading.get(*dear, lambda: 1 << 40, lambda _: "never") is None
    assert reading.get(*wrong, lambda: 0, fails) is None
    assert [each.key for each, _ in reading.missing] == [dear]
    assert reading.failed == [lost]
    again = Reading(store, here=True)
    assert again.get(*wrong, lambda: 0, fails) is None
    assert not again.failed
    assert isinstance(store.find(wrong), Failed)
    store.forget_failures()
    assert store.find(wrong) is None


def test_a_scene_is_a_function_of_its_arguments() -> None:
    session = open_session(ModelOptions("question"), None, None)
    made = [
        scene(
            Reading(Store(), here=True, most=ENDLESS),
            session,
            Position("encoder.0.self_attention.weights"),
            ViewState(),
            Size(160, 45),
            keys=str,
        )
        for _ in range(2)
    ]
    assert made[0].arrangement == made[1].arrangement
    assert not made[0].missing
    first, second = (each.whole.bands for each in made if each.whole is not None)
    for (placement, pictures), (other, others) in zip(first, second, strict=True):
        assert placement == other
        for one, two in zip(pictures, others, strict=True):
            assert all(map(np.array_equal, one.tiles.values, two.tiles.values))


async def test_a_result_that_comes_late_is_kept_for_when_it_is_wanted() -> None:
    async with exploring(WIDE, model="question", whole=None, at="encoder.0.self_attention.weights") as explorer:
        held = len(explorer.parts.explored.store._results)
        await explorer.press("backspace", "space")
        assert len(explorer.parts.explored.store._results) >= held
        assert explorer.parts.explored.scene is not None
        assert not explorer.parts.explored.scene.missing


@pytest.mark.parametrize("stop", [VOCABULARY, TEXT, LOSS, "encoder.0.feed_forward.hidden"])
def test_gradients_are_there_wherever_one_looks_at_the_way_back(stop: str) -> None:
    session = open_session(ModelOptions("question"), None, None).with_overlay(GRADIENT)
    reading = Reading(Store(), here=True, most=ENDLESS)
    scene(reading, session, Position(stop), ViewState(whole=False), Size(*WIDE), keys=str)
    assert session.went_back
