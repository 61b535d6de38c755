from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.form import Choice
from tui_transformer.explorer.shell.worker import Worker
from tui_transformer.explorer.tools.settings import Memory, SettingsScreen, build, values_of
from tui_transformer.model.model import Model

WIDE = (160, 45)


@pytest.fixture(scope="module")
def encoder() -> Model:
    return Model.load("encoder", device="cpu")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Model:
    Model.load("encoder", device="cpu").save(tmp_path / "mine")
    return Model.load(tmp_path / "mine", device="cpu")


def settings(model: Model) -> SettingsScreen:
    """The screen of a model's settings, with a worker of its own."""
    worker = Worker(lambda function, *given: screen.app.call_later(function, *given))
    screen = SettingsScreen(worker, model, Memory(1 << 29, 0, 1), moves=False)
    return screen


async def checked(pilot) -> None:
    """Wait until what was changed is checked."""
    screen = pilot.app.over
    await pilot.pause()
    while not screen.settled:
        await pilot.pause(0.01)
    await pilot.pause()


def focus(pilot, key: str) -> None:
    pilot.app.screen.query_one(f"#{key}").focus()


@pytest.mark.parametrize("size", [WIDE, (100, 30), (80, 24)])
async def test_every_setting_is_shown(open_screen, screen_text, encoder, size):
    async with open_screen(settings(encoder), size) as pilot:
        text = screen_text(pilot.app)
        for word in (
            "[waves]",
            "seed",
            "max length",
            "4096",
            "[post]",
            "[sinusoidal]",
            "off [on]",
            "[float32]",
            "[cpu]",
        ):
            assert word in text
        assert "encoder · d_model 8 · 8 heads · d_ff 128 · 1 layer · 2,464 weights · 9.6 KiB" in text


async def test_a_change_is_described_and_applied(open_screen, screen_text, encoder):
    async with open_screen(settings(encoder)) as pilot:
        focus(pilot, "heads")
        await pilot.press("backspace", "2")
        await checked(pilot)
        assert "d_model 8 · 2 heads" in screen_text(pilot.app)
        await pilot.press("enter")
        await checked(pilot)
        assert pilot.app.result.config.heads == 2
        assert encoder.config.heads == 8


@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("heads", "3", "not divisible by 3 heads"),
        ("heads", "x", "heads “x” is not a whole number"),
        ("heads", "", "heads “” is not a whole number"),
        ("layers", "0", "layers 0 is not a whole number from 1"),
        ("seed", "-", "seed “-” is not a whole number"),
        ("d_ff", "9" * 20, "is not a whole number from 1"),
    ],
)
async def test_a_wrong_value_is_said_and_the_form_stays(open_screen, screen_text, nothing, encoder, key, typed, said):
    async with open_screen(settings(encoder), WIDE) as pilot:
        pilot.app.screen.query_one(f"#{key}", Input).value = typed
        await checked(pilot)
        assert said in screen_text(pilot.app)
        await pilot.press("ctrl+s")
        await checked(pilot)
        assert said in screen_text(pilot.app)
        assert pilot.app.result is nothing
        await pilot.press("escape")
        assert pilot.app.result is None


async def test_keys_go_through_the_fields_and_turn_the_choices(open_screen, encoder):
    async with open_screen(settings(encoder)) as pilot:
        assert pilot.app.focused.id == "vocabulary"
        await pilot.press("left", "down", "tab")
        assert pilot.app.focused.id == "layers"
        await pilot.press("up")
        assert pilot.app.focused.id == "seed"
        for key, press in {"norm": "right", "positions": "space", "bias": "space", "padding_mask": "space"}.items():
            focus(pilot, key)
            await pilot.press(press)
        await pilot.press("ctrl+s")
        await checked(pilot)
        config = pilot.app.result.config
        assert pilot.app.result.vocabulary.name == "nation"
        assert (config.norm, config.positions, config.bias, config.padding_mask) == ("pre", "learned", True, False)


async def test_nothing_changed_gives_no_model(open_screen, encoder):
    async with open_screen(settings(encoder)) as pilot:
        await pilot.press("right", "left", "ctrl+s")
        await checked(pilot)
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
        await pilot.press("enter")
        await checked(pilot)
        own = pilot.app.result
        assert own.vocabulary.words == ("[UNK]", "the", "dog")
    words.write_text("the dog barks")
    async with open_screen(settings(own), WIDE) as pilot:
        assert "[file]" in screen_text(pilot.app)
        await pilot.press("ctrl+s")
        await checked(pilot)
        assert pilot.app.result.vocabulary.size == 4


async def test_a_path_with_markup_and_control_characters_is_harmless(open_screen, screen_text, encoder, nothing):
    async with open_screen(settings(encoder), WIDE) as pilot:
        await pilot.press("right", "down")
        pilot.app.focused.value = "./[red]no[/b]\x1b[2J\x00"
        await pilot.press("ctrl+s")
        await checked(pilot)
        assert screen_text(pilot.app).count("[red]no[/b]␛[2J␀") == 2, "in the input and in the message"
        assert "\x1b" not in screen_text(pilot.app)
        assert pilot.app.result is nothing


async def test_of_a_checkpoint_only_what_is_not_in_its_folder_can_change(open_screen, screen_text, checkpoint):
    async with open_screen(settings(checkpoint)) as pilot:
        assert "stay as they are" in screen_text(pilot.app)
        assert "[file]" in screen_text(pilot.app)
        controls = pilot.app.screen.query("Choice, LineInput")
        changeable = {control.id for control in controls if not control.disabled}
        assert changeable == {"vocabulary", "file", "dtype", "device", "budget", "motion"}
        focus(pilot, "dtype")
        await pilot.press("right", "ctrl+s")
        await checked(pilot)
        assert str(pilot.app.result.backend.dtype) == "float64"
        assert pilot.app.result.folder == checkpoint.folder


async def test_of_the_attention_example_the_mask_and_where_it_is_computed_can_change(open_screen):
    async with open_screen(settings(Model.load("attention", device="cpu"))) as pilot:
        assert [choice.id for choice in pilot.app.screen.query(Choice)] == ["causal", "dtype", "device", "motion"]
        assert [line.id for line in pilot.app.screen.query("LineInput")] == ["budget"]
        await pilot.press("space", "ctrl+s")
        await checked(pilot)
        assert pilot.app.result.config.causal is False


async def test_a_decoder_keeps_its_causal_mask(open_screen, screen_text):
    async with open_screen(settings(Model.load("decoder", device="cpu"))) as pilot:
        assert "A decoder always has the causal mask." in screen_text(pilot.app)
        causal = pilot.app.screen.query_one("#causal", Choice)
        assert (causal.disabled, causal.value) == (True, "on")


async def test_the_help_is_that_of_the_field(open_screen, screen_text, encoder):
    async with open_screen(settings(encoder)) as pilot:
        assert "The words that the model knows" in screen_text(pilot.app)
        await pilot.press("down")
        await pilot.pause()
        assert "the same seed gives the same weights" in screen_text(pilot.app)


@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_at_40_by_12_the_field_its_help_and_the_result_are_seen(open_screen, screen_text, encoder, theme):
    async with open_screen(settings(encoder), (40, 12), theme) as pilot:
        for key in ("seed", "norm", "device", "vocabulary"):
            focus(pilot, key)
            for _ in range(4):
                await pilot.pause()
            here = pilot.app.screen.query_one(f"#{key}")
            assert pilot.app.screen.query_one("#fields").region.contains_region(here.region)
        text = screen_text(pilot.app)
        assert all(words in text for words in ("The words that", "2,464 weights", "ctrl+s apply"))


async def test_columns_follow_the_width(open_screen, encoder):
    async with open_screen(settings(encoder), WIDE) as pilot:
        for width, columns in ((160, 2), (80, 1), (100, 2), (40, 1)):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            lefts = {column.region.x for column in pilot.app.screen.query(".column")}
            assert len(lefts) == columns


async def test_a_small_terminal_and_no_colour(open_screen, screen_text, monkeypatch, checkpoint):
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_screen(settings(checkpoint)) as pilot:
        for size in [(5, 3), (1, 1), (80, 24)]:
            await pilot.resize_terminal(*size)
            await pilot.press("down")
        await pilot.pause()
        assert "[float32]" in screen_text(pilot.app)


def test_values_that_are_not_changed_build_nothing(encoder):
    assert build(encoder, values_of(encoder)) is encoder


def test_separators_in_numbers_are_read(encoder):
    assert build(encoder, values_of(encoder) | {"d_ff": " 1,024 "}).config.d_ff == 1024


@pytest.mark.parametrize("typed", ["1.5", "٣", "-1", "1e3", "1_0"])
def test_what_is_no_whole_number_is_refused(encoder, typed):
    with pytest.raises(InputError, match="use digits only"):
        build(encoder, values_of(encoder) | {"layers": typed})


def test_a_vocabulary_that_was_made_of_a_text_is_kept(encoder):
    from tui_transformer.text.vocabulary import parse_vocabulary

    model = encoder.changed(vocabulary=parse_vocabulary("a b c", "typed"))
    assert build(model, values_of(model) | {"layers": "2"}).vocabulary.words == ("[UNK]", "a", "b", "c")


def test_word_vectors_begin_as_is_chosen(encoder: Model):
    zeros = build(encoder, values_of(encoder) | {"embedding": "zeros"})
    assert not zeros.trace("the waves")["embedding.tokens"].any()
    assert values_of(zeros)["embedding"] == "zeros"
