"""Going to a step by a few letters, and reading all of what it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.guide.texts import step_text
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import destination, names

SENTENCES = Path(__file__).parents[2] / "sentences" / "bert"
SESSION = open_session(ModelOptions(model="encoder", sizes={"layers": 3}), "the waves", None)


@pytest.mark.parametrize(
    ("typed", "stop"),
    [
        ("1", SESSION.stops[0]),
        (f"{len(SESSION.stops)}", SESSION.stops[-1]),
        (":4", SESSION.stops[3]),
        ("weights", "encoder.1.self_attention.weights"),
        ("2.weights", "encoder.2.self_attention.weights"),
        ("0.act", "encoder.0.feed_forward.activation"),
        ("encoder.2.feed_forward.output", "encoder.2.feed_forward.output"),
        ("encoder.2", next(name for name in SESSION.stops if name.startswith("encoder.2."))),
        ("Vocabulary", "vocabulary"),
        ("encoder.0.self_attention.query.weight", "encoder.0.self_attention.query.weight"),
    ],
)
def test_what_is_typed_leads_to_a_step(typed, stop):
    assert destination(SESSION, "encoder.1.self_attention.query", typed) == stop


@pytest.mark.parametrize("typed", ["0", "999", "", "nothing", "7.weights", "[b]", "\x1b[2J"])
def test_what_is_nowhere_is_refused_in_one_line(typed):
    with pytest.raises(InputError) as caught:
        destination(SESSION, "tokens", typed)
    assert "\n" not in str(caught.value)


def test_every_name_that_is_offered_leads_somewhere():
    for name in names(SESSION):
        assert destination(SESSION, "tokens", name).endswith(name.rpartition(".")[2])


async def test_the_colon_asks_where_and_goes_there():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.prompt(":", "nowhere")
        assert "there is no step 'nowhere'" in explorer.text
        await explorer.answer("0.weights")
        assert explorer.stop == "encoder.0.self_attention.weights"
        await explorer.press(":", "escape")
        assert explorer.stop == "encoder.0.self_attention.weights"


async def test_all_of_what_a_step_is_can_be_read_in_the_help():
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.scaled") as explorer:
        words = step_text(explorer.stop)
        async for size in explorer.sizes(WIDE, MEDIUM, SMALL):
            await explorer.press("?", "enter")
            seen = [""]
            while seen[-1] != explorer.text:
                seen.append(explorer.text)
                await explorer.press("pagedown")
            for sentence in (words.what, words.why, words.look):
                assert all(word in "".join(seen) for word in sentence.split()), size
            await explorer.leave()


def test_a_step_that_is_called_so_comes_before_one_that_only_begins_so():
    session = open_session(ModelOptions(str(SENTENCES)), None, (2, 3, 4))
    assert session.stops.index("pooled.first") < session.stops.index("pooled")
    assert destination(session, "tokens", "Pooled") == "pooled"
