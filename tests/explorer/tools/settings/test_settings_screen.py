"""The settings of a model as a form, with the budget of memory: shown, set, and estimated before anything is taken."""

from __future__ import annotations

import asyncio

import pytest
from driving import WIDE, Explorer, exploring
from textual.widgets import Input

from tui_transformer.engine.parts import keep_plan
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.form import Choice
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools.settings import Memory, SettingsScreen, build, values_of
from tui_transformer.machine import parse_size, readable
from tui_transformer.model.model import Model
from tui_transformer.text.vocabulary import parse_vocabulary


@pytest.fixture(scope="module")
def encoder() -> Model:
    return Model.load("encoder", device="cpu")


def settings(model: Model) -> SettingsScreen:
    """The screen of a model's settings, with a worker of its own."""
    worker = Worker(lambda function, *given: screen.app.call_later(function, *given))
    screen = SettingsScreen(worker, model, Memory(1 << 29, 0, 1), moves=False)
    return screen


async def checked(pilot, *keys: str) -> None:
    """Press keys, and wait until what was changed is checked."""
    await pilot.press(*keys)
    await pilot.pause()
    async with asyncio.timeout(60):
        while not pilot.app.over.settled:
            await pilot.pause(0.01)
    await pilot.pause()


def focus(pilot, key: str) -> None:
    pilot.app.screen.query_one(f"#{key}").focus()


async def test_every_setting_is_shown_with_the_help_of_its_field_at_every_size(open_screen, screen_text, encoder):
    async with open_screen(settings(encoder), WIDE) as pilot:
        for size, columns in {WIDE: 2, (80, 24): 1, (100, 30): 2}.items():
            await pilot.resize_terminal(*size)
            await pilot.pause()
            text = screen_text(pilot.app)
            for word in ("[waves]", "seed", "max length", "4096", "[post]", "off [on]", "[float32]", "[cpu]"):
                assert word in text
            assert "[sinusoidal]" in text
            assert "encoder · d_model 8 · 8 heads · d_ff 128 · 1 layer · 2,464 weights · 9.6 KiB" in text
            assert len({column.region.x for column in pilot.app.screen.query(".column")}) == columns
        # the help
        assert "The words that the model knows" in text
        await pilot.press("down")
        await pilot.pause()
        assert "the same seed gives the same weights" in screen_text(pilot.app)
        await pilot.resize_terminal(40, 24)
        await pilot.pause()
        assert len({column.region.x for column in pilot.app.screen.query(".column")}) == 1


async def test_at_40_by_12_the_field_its_help_and_the_result_are_seen(open_screen, screen_text, encoder):
    async with open_screen(settings(encoder), (40, 12)) as pilot:
        for theme in ("tui-dark", "tui-light"):
            pilot.app.theme = theme
            for key in ("seed", "norm", "device", "vocabulary"):
                focus(pilot, key)
                for _ in range(4):
                    await pilot.pause()
                here = pilot.app.screen.query_one(f"#{key}")
                assert pilot.app.screen.query_one("#fields").region.contains_region(here.region)
            text = screen_text(pilot.app)
            assert all(words in text for words in ("The words that", "2,464 weights", "ctrl+s apply"))


async def test_keys_go_through_the_fields_and_what_they_change_is_described_and_applied(
    open_screen, screen_text, encoder
):
    async with open_screen(settings(encoder)) as pilot:
        assert pilot.app.focused.id == "vocabulary"
        await pilot.press("left", "down", "tab")
        assert pilot.app.focused.id == "layers"
        await pilot.press("up")
        assert pilot.app.focused.id == "seed"
        focus(pilot, "heads")
        await checked(pilot, "backspace", "2")
        assert "d_model 8 · 2 heads" in screen_text(pilot.app)
        for key, press in {"norm": "right", "positions": "space", "bias": "space", "padding_mask": "space"}.items():
            focus(pilot, key)
            await pilot.press(press)
        await checked(pilot, "ctrl+s")
        config = pilot.app.result.config
        assert pilot.app.result.vocabulary.name == "nation"
        assert (config.norm, config.positions, config.bias, config.padding_mask) == ("pre", "learned", True, False)
        assert (config.heads, encoder.config.heads) == (2, 8)


async def test_a_wrong_value_is_said_and_the_form_stays(open_screen, screen_text, nothing, encoder):
    async with open_screen(settings(encoder), WIDE) as pilot:
        for typed, said in (("", "heads “” is not a whole number"), ("3", "not divisible by 3 heads")):
            pilot.app.screen.query_one("#heads", Input).value = typed
            await checked(pilot)
            assert said in screen_text(pilot.app)
            await checked(pilot, "ctrl+s")
            assert said in screen_text(pilot.app)
            assert pilot.app.result is nothing
        pilot.app.screen.query_one("#heads", Input).value = "8"
        # a path with markup and control characters
        await pilot.press("right", "down")
        pilot.app.focused.value = "./[red]no[/b]\x1b[2J\x00"
        await checked(pilot, "ctrl+s")
        assert screen_text(pilot.app).count("[red]no[/b]␛[2J␀") == 2, "in the input and in the message"
        assert "\x1b" not in screen_text(pilot.app)
        assert pilot.app.result is nothing
        await pilot.press("escape")
        assert pilot.app.result is None


async def test_a_vocabulary_file_is_typed_in_and_read_again(open_screen, screen_text, encoder, tmp_path):
    words = tmp_path / "own.txt"
    words.write_text("the dog")
    async with open_screen(settings(encoder), WIDE) as pilot:
        await pilot.press("right", "down")
        assert pilot.app.focused.id == "file"
        await checked(pilot)
        assert "path is empty" in screen_text(pilot.app)
        pilot.app.focused.value = str(words)
        await checked(pilot, "enter")
        own = pilot.app.result
        assert own.vocabulary.words == ("[UNK]", "the", "dog")
    words.write_text("the dog barks")
    async with open_screen(settings(own), WIDE) as pilot:
        assert "[file]" in screen_text(pilot.app)
        await checked(pilot, "ctrl+s")
        assert pilot.app.result.vocabulary.size == 4


async def test_of_a_checkpoint_only_what_is_not_in_its_folder_can_change(open_screen, screen_text, tmp_path, no_colors):
    Model.load("encoder", device="cpu").save(tmp_path / "mine")
    checkpoint = Model.load(tmp_path / "mine", device="cpu")
    async with open_screen(settings(checkpoint)) as pilot:
        for size in [(5, 3), (1, 1), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.press("down")
        await pilot.pause()
        for text in ("stay as they are", "[file]", "[float32]"):
            assert text in screen_text(pilot.app)
        controls = pilot.app.screen.query("Choice, LineInput")
        changeable = {control.id for control in controls if not control.disabled}
        assert changeable == {"vocabulary", "file", "dtype", "device", "budget", "motion"}
        focus(pilot, "dtype")
        await checked(pilot, "right", "ctrl+s")
        assert str(pilot.app.result.backend.dtype) == "float64"
        assert pilot.app.result.folder == checkpoint.folder


async def test_of_the_attention_example_the_mask_and_where_it_is_computed_can_change(open_screen):
    async with open_screen(settings(Model.load("attention", device="cpu"))) as pilot:
        assert [choice.id for choice in pilot.app.screen.query(Choice)] == ["causal", "dtype", "device", "motion"]
        assert [line.id for line in pilot.app.screen.query("LineInput")] == ["budget"]
        await checked(pilot, "space", "ctrl+s")
        assert pilot.app.result.config.causal is False


async def test_a_decoder_keeps_its_causal_mask_and_nothing_changed_gives_no_model(open_screen, screen_text):
    async with open_screen(settings(Model.load("decoder", device="cpu"))) as pilot:
        assert "A decoder always has the causal mask." in screen_text(pilot.app)
        causal = pilot.app.screen.query_one("#causal", Choice)
        assert (causal.disabled, causal.value) == (True, "on")
        await checked(pilot, "right", "left", "ctrl+s")
        assert pilot.app.result is None


def test_the_model_is_built_with_what_differs(encoder):
    own = values_of(encoder)
    assert build(encoder, own) is encoder
    assert build(encoder, own | {"d_ff": " 1,024 "}).config.d_ff == 1024
    zeros = build(encoder, own | {"embedding": "zeros"})
    assert not zeros.trace("the waves")["embedding.tokens"].any()
    assert values_of(zeros)["embedding"] == "zeros"
    typed = encoder.changed(vocabulary=parse_vocabulary("a b c", "typed"))
    assert build(typed, values_of(typed) | {"layers": "2"}).vocabulary.words == ("[UNK]", "a", "b", "c")


@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("heads", "3", "not divisible by 3 heads"),
        ("heads", "x", "heads “x” is not a whole number: use digits only"),
        ("heads", "", "heads “” is not a whole number: use digits only"),
        ("seed", "-", "seed “-” is not a whole number: use digits only"),
        ("layers", "0", "layers 0 is not a whole number from 1"),
        ("d_ff", "9" * 20, "is not a whole number from 1"),
        *(("layers", typed, "use digits only") for typed in ("1.5", "٣", "-1", "1e3", "1_0")),
    ],
)
def test_what_cannot_be_is_refused(encoder, key, typed, said):
    with pytest.raises(InputError, match=said):
        build(encoder, values_of(encoder) | {key: typed})


async def open_settings(explorer: Explorer) -> SettingsScreen:
    await explorer.keys(",")
    await explorer.until(lambda: isinstance(explorer.app.screen, SettingsScreen))
    return explorer.app.screen


async def test_a_smaller_budget_is_estimated_before_it_is_applied_and_then_kept_to():
    async with exploring(WIDE, text="the waves " * 40, sizes={"heads": 8}) as explorer:
        await explorer.press("space", "space")
        session, trace = explorer.session, explorer.session.trace
        form = await open_settings(explorer)
        assert form.query_one("#budget").value == "512 MiB"
        total = readable(trace.plan.total)
        assert f"80 tokens: {total} of values, all kept · now held {readable(trace.held_bytes)}" in explorer.text
        # left as it was
        await explorer.leave("ctrl+s")
        assert explorer.session is session
        # no amount of memory
        form = await open_settings(explorer)
        form.query_one("#budget").value = "3 XiB"
        await explorer.shown("memory “3 XiB” is not an amount of memory")
        await explorer.keys("ctrl+s")
        assert explorer.app.screen is form
        # a smaller budget
        plan = keep_plan(trace.program, 4, 400 * 1024)
        form.query_one("#budget").value = "400KiB"
        await explorer.shown(f"80 tokens: {readable(plan.total)} of values, {readable(plan.bytes)} kept")
        assert explorer.session.budget == 512 << 20
        await explorer.keys("ctrl+s")
        await explorer.until(lambda: explorer.session.budget == 400 * 1024)
        await explorer.settled()
        assert explorer.session.trace.plan.names == plan.names
        await explorer.go("encoder.0.self_attention.weights")
        assert explorer.session.trace.held_bytes <= 400 * 1024
        await explorer.press("u")
        assert explorer.session.budget == 512 << 20


async def test_edits_and_targets_stay_in_another_precision_and_go_with_other_weights():
    async with exploring(WIDE, model="encoder", device="cpu") as explorer:
        await explorer.go("encoder.0.self_attention.weights", 1, 2, 3)
        await explorer.prompt("e", "0.5")
        await explorer.change(explorer.session.with_targets((5,) * len(explorer.session.encoding.ids)))
        edits, targets = explorer.session.edits, explorer.session.targets
        form = await open_settings(explorer)
        form.query_one("#dtype", Choice).index = 1
        await explorer.leave("ctrl+s")
        session = explorer.session
        assert (str(session.model.backend.dtype), session.edits, session.targets) == ("float64", edits, targets)
        assert session.trace["encoder.0.self_attention.weights"].reshape(8, -1)[1, 2 * len(targets) + 3] == 0.5
        form = await open_settings(explorer)
        form.query_one("#seed", Input).value = "5"
        await explorer.leave("ctrl+s")
        assert explorer.session.edits == ()
        assert explorer.messages[-1] == "what was edited or broken was of the other model: u brings it back"
        await explorer.press("u")
        assert explorer.session.edits == edits


AMOUNTS = {"512MiB": 512 << 20, "2 GiB": 2 << 30, "0": 0, "1.5kib": 1536}


@pytest.mark.parametrize(
    ("text", "size"), [*AMOUNTS.items(), *((text, None) for text in ("x", "much", "-1", "", "3 XiB", "9999 TiB"))]
)
def test_amounts_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


async def test_a_click_chooses_the_value_under_it(open_screen, screen_text, encoder):
    async with open_screen(settings(encoder), WIDE) as pilot:

        async def click(value: str, key: str) -> str:
            choice = pilot.app.screen.query_one(f"#{key}", Choice)
            left = screen_text(pilot.app).splitlines()[choice.region.y].index(value, choice.region.x)
            await pilot.click(offset=(left, choice.region.y))
            await checked(pilot)
            return choice.value

        assert [await click(each, "positions") for each in ("none", "sinusoidal", "sinusoidal")] == [
            "none",
            "sinusoidal",
            "sinusoidal",
        ]
        choice = pilot.app.screen.query_one("#positions", Choice)
        await pilot.click(offset=(choice.region.right - 1, choice.region.y))  # beside them
        assert choice.value == "sinusoidal"
        # where one stands alone, the next
        assert " of " in screen_text(pilot.app).splitlines()[pilot.app.screen.query_one("#vocabulary").region.y]
        before = pilot.app.screen.query_one("#vocabulary", Choice).index
        await pilot.click("#vocabulary", offset=(2, 0))
        await checked(pilot)
        assert pilot.app.screen.query_one("#vocabulary", Choice).index == before + 1
