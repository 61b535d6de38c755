"""The model and its sentence changed while they are explored: settings, typed edits, and heads that are ablated."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer.engine.targets import Target
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.form import Choice
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.settings import SettingsScreen
from tui_transformer.model.options import ModelOptions


async def set_settings(explorer: Explorer, **values: object) -> None:
    """Change settings in the form and apply them."""
    await explorer.keys(",")
    await explorer.until(lambda: isinstance(explorer.app.screen, SettingsScreen))
    form = explorer.app.screen
    for key, value in values.items():
        control = form.query_one(f"#{key}")
        if isinstance(control, Choice):
            control.index = control.values.index(str(value))
        else:
            control.value = str(value)
    await explorer.settled()
    await explorer.keys("ctrl+s")
    await explorer.until(lambda: explorer.app.screen is explorer.main or form.query_one("#status").has_class("problem"))
    await explorer.settled()


CHANGES = {
    "seed": ({"seed": 7}, lambda model: model.seed == 7),
    "sizes": (
        {"d_model": 6, "heads": 3, "d_ff": 10, "layers": 2},
        lambda model: (model.config.d_model, model.config.heads, model.config.layers) == (6, 3, 2),
    ),
    "norm": ({"norm": "pre"}, lambda model: model.config.norm == "pre"),
    "mask": ({"causal": "on"}, lambda model: model.config.causal),
    "precision": ({"dtype": "float64"}, lambda model: str(model.backend.dtype) == "float64"),
    "positions": ({"positions": "learned"}, lambda model: model.config.positions == "learned"),
    "vocabulary": ({"vocabulary": "english"}, lambda model: model.vocabulary.name == "english"),
}


async def test_settings_change_the_model_and_can_be_undone_or_are_refused():
    async with exploring(NARROW, at="encoder.0.self_attention.weights") as explorer:
        before, values_before = explorer.session, explorer.session.trace["output.logits"]
        for name, (values, holds) in CHANGES.items():
            await set_settings(explorer, **values)
            assert holds(explorer.session.model), name
            assert explorer.stop == "encoder.0.self_attention.weights"
            assert not np.array_equal(explorer.session.trace["output.logits"], values_before), name
            await explorer.press("u")
            assert explorer.session is before
            await explorer.press("U")
            assert holds(explorer.session.model), name
            await explorer.press("u")
        # what cannot be is refused in the form
        await set_settings(explorer, heads=3)
        assert "not divisible by 3 heads" in explorer.text
        await explorer.press("escape")
        assert explorer.session is before


async def test_a_stop_that_is_gone_with_its_layer_is_left():
    async with exploring(WIDE, sizes={"layers": 3}, at="encoder.2.self_attention.scores") as explorer:
        await explorer.press("5", "enter", "enter")
        await set_settings(explorer, layers=1)
        assert explorer.stop in (*explorer.session.stops, *explorer.session.trace.program.weights)
        for _ in range(5):
            await explorer.press("escape")
        await explorer.press("space", "4", "c", "w", "escape")
        assert explorer.session.model.config.layers == 1


EDITS = {
    "encoder": (
        "encoder.0.feed_forward.hidden.weight",
        "embedding.tokens.weight",
        "encoder.0.self_attention.scores",
        "embedding.output",
    ),
    "attention": (
        "encoder.0.self_attention.query",
        "encoder.0.self_attention.key",
        "encoder.0.self_attention.value.weight",
    ),
}


@pytest.mark.parametrize("model", EDITS)
async def test_an_edit_changes_what_is_downstream_and_is_undone(model: str):
    async with exploring(NARROW, model=model, sizes={"causal": False} if model == "attention" else {}) as explorer:
        base = explorer.session
        for name in EDITS[model]:
            await explorer.go(name.removesuffix(".weight"))
            await explorer.press(*["w"] * name.endswith(".weight"), "home", "g", "down")
            assert (explorer.stop, explorer.position.place.row) == (name, 1)
            await explorer.prompt("e", "-2,5")
            edited = explorer.session
            reached = edited.trace.program.downstream([name])
            for step in edited.trace.program.steps:
                same = np.array_equal(edited.trace[step.name], base.trace[step.name])
                assert same or step.name in reached
            assert not same, "what comes last is changed"
            assert (edited.trace[name] == -2.5).sum() == 1
            assert "set by hand" in explorer.text
            assert explorer.stop == name
            await explorer.press("u")
            assert explorer.session is base
            assert "set by hand" not in explorer.text
            await explorer.press("U")
            assert explorer.session is edited
            assert "set by hand" in explorer.text
            await explorer.press("u")


async def test_an_edit_has_to_be_a_number_or_to_name_its_step():
    async with exploring(NARROW, at="embedding.output") as explorer:
        before = explorer.session
        await explorer.press("e")
        for bad in ("", "seven", "nan", "inf", "-1e400", "1e39", "1 2", "[b]0[/b]"):
            await explorer.answer(bad)
            assert explorer.app.screen is not explorer.main
            problem = explorer.app.screen.query_one("#problem").visual.plain
            assert repr(bad) in problem
            assert "\n" not in problem
        await explorer.press("escape")
        assert explorer.session is before
        # words have no number
        await explorer.go("tokens")
        await explorer.prompt("e", "3")
        assert explorer.app.screen is not explorer.main
        assert "there is no number here: name a step or a weight" in explorer.text
        await explorer.answer("embedding.output[1] = 0")
        assert not explorer.session.trace["embedding.output"][1].any()


async def test_values_that_overflow_are_shown():
    async with exploring(WIDE, at="embedding.tokens") as explorer:
        await explorer.prompt("e", "3e38")
        while explorer.stop != "text":
            await explorer.press("space", "c")
        await explorer.go("embedding.tokens")
        assert not np.isfinite(explorer.session.trace["encoder.0.self_attention.scores"]).all()


@pytest.mark.parametrize(("given", "words"), [({}, "The waves crashed"), ({"ids": [1, 2, 3]}, "the waves crashed")])
async def test_another_vocabulary_is_chosen_where_the_vocabulary_is_and_brings_a_sentence(given: dict, words: str):
    async with exploring(NARROW, **given) as explorer:
        assert words in explorer.text
        await explorer.go("embedding.output")
        await explorer.press("v")
        assert explorer.stop == "vocabulary"
        await explorer.prompt("v", "nonesuch")
        assert "no vocabulary is called" in explorer.messages[-1]
        await explorer.prompt("v", "dog")
        assert explorer.session.model.vocabulary.name == "dog"
        assert "a dog bites a man" in explorer.text
        assert "Vocabulary · dog" in explorer.text
        await explorer.press("u")
        assert words in explorer.text


async def test_a_changed_vocabulary_file_is_read_again(tmp_path: Path):
    path = tmp_path / "mine.txt"
    path.write_text("red green blue")
    async with exploring(WIDE, vocab=str(path), text="red blue") as explorer:
        assert explorer.session.model.vocabulary.size == 4
        path.write_text("red green blue yellow")
        await explorer.press("v", "enter")
        assert explorer.session.model.vocabulary.size == 5
        assert "yellow" in explorer.text
        path.write_text("red")
        await explorer.press("v", "enter")
        assert explorer.session.model.vocabulary.size == 2
        assert explorer.session.text == "red"
        path.unlink()
        await explorer.press("v", "enter")
        assert "does not exist" in explorer.messages[-1]
        assert explorer.session.model.vocabulary.size == 2


async def test_typing_shows_the_sentence_and_leaving_brings_everything_back():
    async with exploring(WIDE, at="encoder.0.self_attention.scores") as explorer:
        await explorer.press("]", "G", "end", "5", "enter")
        before, position, trail = explorer.session, explorer.position, list(explorer.parts.explored.trail)
        await explorer.press("/", "ctrl+u", "w", "a", "v", "e", "s")
        assert explorer.session.text == "waves"
        assert explorer.session.trace.program.shape("tokens") == (1,)
        # keys that come together edit in their order
        await explorer.keys("ctrl+u")
        explorer.send(*"abc", "backspace", "d", "home", "X", "end", "Y")
        await explorer.handled()
        assert explorer.focused_input.value == "XabdY"
        explorer.send("ctrl+u", *"the sea")
        await explorer.handled()
        assert explorer.focused_input.value == "the sea"
        await explorer.press("escape")
        assert explorer.session is before
        assert (explorer.position, explorer.parts.explored.trail) == (position, trail)
        await explorer.press("u", "U")
        assert "there is nothing to undo" in explorer.messages
        assert "there is nothing to redo" in explorer.messages


async def test_edits_stay_with_the_same_sentence_and_those_of_weights_with_another():
    async with exploring(NARROW, at="embedding.tokens") as explorer:
        await explorer.prompt("e", "1")
        edited = explorer.session
        await explorer.press("/", "enter")
        assert explorer.session is edited
        await explorer.press("w", "e")
        await explorer.answer("2")
        await explorer.prompt("/", "the shore")
        assert [edit.name for edit in explorer.session.edits] == ["embedding.tokens.weight"]


def test_without_positions_the_order_of_words_does_not_matter():
    rows = []
    for text in ("a dog bites a man", "a man bites a dog"):
        session = open_session(ModelOptions(vocab="dog", sizes={"positions": "none"}), text, None)
        values = session.trace["encoder.0.output"]
        rows.append(values[np.argsort(values[:, 0])])
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)


async def test_a_folder_without_words_takes_token_ids(reference):
    async with exploring(NARROW, model=str(reference.folder), ids=[1, 2, 3]) as explorer:
        assert explorer.session.model.vocabulary is None
        await explorer.prompt("/", "4, 5")
        assert explorer.session.encoding.ids == (4, 5)
        await explorer.prompt("/", "four")
        assert "write token IDs" in explorer.text


TYPED = {
    "+= 0.5": (lambda old: old + 0.5, "+ 0.5"),
    "*= 2": (lambda old: old * 2, "× 2"),
    "-=.25": (lambda old: old - 0.25, "+ −0.25"),
    "= 3": (lambda old: 3.0, "→ 3"),
}


async def test_an_operation_is_made_in_the_cell_under_the_cursor():
    async with exploring(WIDE, at="embedding.output") as explorer:
        await explorer.press("down", "right")
        old = explorer.session.trace["embedding.output"]
        for typed, (how, said) in TYPED.items():
            await explorer.prompt("e", typed)
            new = explorer.session.trace["embedding.output"]
            assert new[1, 1] == pytest.approx(how(old[1, 1]), rel=1e-6)
            assert (new != old).sum() == 1
            assert f"row 1 column 1 {said}" in explorer.text
            assert explorer.scene.view.edited == ((range(1, 2), range(1, 2)),)
            await explorer.press("u")


async def test_any_step_is_edited_as_with_the_option_and_operations_add_up():
    async with exploring(WIDE, model="copy", ids=(5, 6, 7, 8, 5)) as explorer:
        base = explorer.session.trace
        name = base.program.named("0.output")
        for typed in ("0.output[2:4] += 1", "0.output[2:4] += 1", "1.self_attention.context[3] = mean"):
            await explorer.prompt("e", typed)
        now = explorer.session.trace
        np.testing.assert_allclose(now[name][2:4], base[name][2:4] + 2, atol=1e-6)
        assert np.ptp(now["1.self_attention.context"][3], axis=0).max() < 1e-6
        assert "3 edits, last decoder.1.self_attention head 3 → mean" in explorer.text
        assert explorer.stop == "decoder.1.self_attention.context"
        await explorer.press("u", "u", "u")
        assert explorer.session.edits == ()
        await explorer.press("e")
        for bad in ("0.output[9] = 0", "nothing = 1", "0.output = ", "0.output = [1]", "0.output[0,0,0] = 1"):
            await explorer.answer(bad)
            assert explorer.app.screen is not explorer.main
            assert explorer.app.screen.query_one("#problem").visual.plain


async def test_means_of_texts_are_read_by_the_worker_and_stay_for_other_sentences():
    async with exploring(WIDE, model="story", text="The fox found") as explorer:
        trace = explorer.session.model.trace("a shell")
        name = trace.program.named("0.output")
        await explorer.prompt("e", "0.output += 2*'a shell'")
        await explorer.prompt("/", "A crow went home .")
        session = explorer.session
        wanted = session.base[name] + 2 * trace[name].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(session.trace[name], wanted, atol=1e-5)
        assert f"{name} + 2 × 'a shell'" in explorer.text


GPT2 = {"model": str(REFERENCES / "gpt2"), "text": "the waves crashed against the shore"}
CONTEXT = "decoder.0.self_attention.context"


REMAPPED = Preferences(
    keys={"ablate.head.mean": "M", "ablate.position": "o", "ablate.position.mean": "O"}, classic=True
)
"""Actions that have no key unless they are given one."""


async def test_the_head_of_the_cell_is_ablated() -> None:
    async with exploring(WIDE, preferences=REMAPPED, **GPT2) as explorer:
        before = explorer.session.base[CONTEXT]
        for count, (key, mean) in enumerate((("a", False), ("M", True))):
            await explorer.go("decoder.0.self_attention.weights")
            await explorer.press(*["]"] * (2 - explorer.position.place.head), key)
            await explorer.until(lambda count=count: len(explorer.messages) > count)
            assert explorer.stop == CONTEXT
            assert explorer.session.edits == Target("head", "decoder.0.self_attention", 2).edits(
                explorer.session.trace.program, mean=mean
            )
            expected = np.broadcast_to(before[2].mean(axis=0) if mean else 0.0, before[2].shape)
            np.testing.assert_allclose(explorer.session.trace[CONTEXT][2], expected, atol=1e-6)
            assert f"ablated to {'the mean' if mean else '0'}" in explorer.text
            assert explorer.messages[-1].startswith("answer at position 14")
            await explorer.press("u")
            assert not explorer.session.edits


async def test_the_position_of_the_row_is_ablated_and_the_text_says_what_was_before() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2) as explorer:
        before = explorer.session.base["decoder.0.output"]
        for key, mean in (("o", np.zeros(32)), ("O", before.mean(axis=0))):
            await explorer.go("decoder.1.self_attention.norm")
            await explorer.press("g", "down", "down", key)
            values = explorer.session.trace["decoder.0.output"]
            np.testing.assert_allclose(values[2], mean, atol=1e-6)
            np.testing.assert_array_equal(np.delete(values, 2, 0), np.delete(before, 2, 0))
            assert explorer.position.place.row == 2
            await explorer.press("u")
        await explorer.go("decoder.0.self_attention.weights")
        await explorer.press("a")
        await explorer.go("text")
        best = explorer.session.base["output.probabilities"][-1].max()
        assert "before: without the edits" in explorer.text
        assert re.search(rf"^ *│? *before .* {best * 100:.1f} %", explorer.text, re.MULTILINE), explorer.text


async def test_the_position_of_a_source_token_is_in_the_encoder() -> None:
    model = ModelOptions(str(REFERENCES / "t5"))
    session = open_session(model, None, (5, 9, 12, 7), decoder_ids=(0, 8, 3))
    async with exploring(NARROW, session=session, preferences=REMAPPED, at="decoder.0.cross_attention.key") as explorer:
        await explorer.press("down", "o")
        assert [edit.name for edit in explorer.session.edits] == ["embedding.tokens"]
        await explorer.press("u")
        await explorer.go("decoder.0.cross_attention.output")
        await explorer.press("o")
        assert [edit.name for edit in explorer.session.edits] == ["decoder.embedding.tokens"]


async def test_where_there_is_no_head_or_position_it_is_said() -> None:
    async with exploring(NARROW, model=str(REFERENCES / "llama"), ids=(5, 9, 12, 7), preferences=REMAPPED) as explorer:
        await explorer.press("a", "o")
        assert "no head is shown here" in explorer.messages[-2]
        assert "no positions" in explorer.messages[-1]
        await explorer.go("decoder.0.self_attention.key")
        await explorer.press("a")
        assert "heads share these" in explorer.messages[-1]
        assert not explorer.session.edits
        # all of them are in the palette
        titles = {command.title for command in explorer.app.get_system_commands(explorer.main)}
        assert {"Ablate this head (zero)", "Ablate this head (mean)", "Ablate this position (zero)"} <= titles


async def test_what_is_beside_by_choice_stays() -> None:
    async with exploring(NARROW, preferences=REMAPPED, **GPT2, at="decoder.0.self_attention.weights") as explorer:
        await explorer.press("d", "enter")
        await explorer.answer("the shore")
        await explorer.until(lambda: explorer.session.comparison is not None)
        await explorer.press("a")
        assert explorer.session.overlay.text == "the shore"
        assert len(explorer.session.edits) == 1
