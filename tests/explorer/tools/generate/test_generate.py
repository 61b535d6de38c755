"""The screen that writes on, driven from outside: keys in, text of the screen out."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, PATIENCE, SMALL, WIDE, Explorer, exploring
from hostile_words import KINDS, check_screen
from reference import REFERENCES

from tui_transformer import Model
from tui_transformer.engine.changes import Set
from tui_transformer.engine.edits import Ablate
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.tools.generate.screen import GenerateScreen
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.machine import readable
from tui_transformer.records import replace
from tui_transformer.text.known_words import sample_sentence

BARS = re.compile(r"│ +(▸?) *(\S+) +(\d+) [█▉▊▋▌▍▎▏ ]+? +(\d+\.\d+) %")


def screen(explorer: Explorer) -> GenerateScreen:
    return explorer.screen(GenerateScreen)


def written(explorer: Explorer) -> tuple[int, ...]:
    draft = screen(explorer).writing.draft
    assert draft is not None
    return draft.ids


async def set_numbers(explorer: Explorer, **values: str) -> None:
    await explorer.press("comma")
    for key, value in values.items():
        await explorer.fill(key, value)
    await explorer.press("enter")


def greedy(count: int, **options) -> tuple[int, ...]:
    """Text that the library writes without any screen."""
    model = Model.load("decoder", **options)
    writer = Writer(model, Settings(greedy=True, max_new_tokens=count))
    return list(writer.run(writer.begin(prompt_of(model))))[-1].ids


def prompt_of(model: Model) -> tuple[int, ...]:
    assert model.vocabulary is not None
    return model.encode(sample_sentence(model.vocabulary)).ids


async def test_each_step_writes_the_token_that_the_library_writes_of_a_distribution_drawn_as_bars():
    async with exploring(WIDE, model="decoder") as explorer:
        await explorer.press("W")
        state = screen(explorer).writing.draft.state
        before = BARS.findall(explorer.text)
        assert [int(token) for _, _, token, _ in before] == np.argsort(-state.logits, kind="stable").tolist()
        assert [int(token) for mark, _, token, _ in before if mark] == [state.candidate]
        shares = [float(share) for *_, share in before]
        assert shares == pytest.approx(100 * state.alone[np.argsort(-state.logits)], abs=0.006)
        # the cache grows by a row a token, and says its memory from the real arrays
        assert "kept 0   ● computed now 8" in explorer.text
        await explorer.press("space")
        assert "kept 8   ● computed now 1" in explorer.text
        taken = screen(explorer).writing.draft.writer.cache.bytes
        assert taken == 2 * 8 * 9 * 1 * 4
        words = " ".join(explorer.text.replace("│", " ").split())
        assert f"2 (K, V) × 1 layer × 8 key heads × 9 tokens × d_k 1 × 4 bytes = {readable(taken)} now" in words
        await explorer.press("right", "l")
        assert written(explorer) == greedy(3)
        # back to what the first token was chosen from
        await explorer.press("left", "left", "backspace")
        assert BARS.findall(explorer.text) == before
        assert "was written" in explorer.text
        assert written(explorer) == greedy(3)
        await explorer.press("h")
        assert any("were given" in message for message in explorer.messages)
        # steps that keys ask for while a token is computed are made one after another
        await explorer.press("escape", "W")
        explorer.send("space", "space", "space", "left", "space", "space")
        await explorer.until(lambda: len(written(explorer)) == 12)
        await explorer.settled()
        assert written(explorer) == greedy(4)


async def test_the_text_opens_in_the_explorer_and_another_prompt_or_a_token_by_hand_is_undone():
    async with exploring(WIDE, model="decoder") as explorer:
        # opened in the explorer at the probabilities of the next token; keys wait for the prompt to be read
        async with explorer.waiting():
            await explorer.keys("W", "space", "space", "E")
        assert explorer.session.encoding.ids == greedy(2)
        assert explorer.stop == "output.probabilities"
        assert explorer.position.place.row == 9
        await explorer.press("u")
        assert len(explorer.session.encoding.ids) == 8
        # another prompt
        await explorer.press("W", "space", "space", "space", "slash")
        await explorer.answer("the waves")
        assert written(explorer) == (1, 2)
        await explorer.press("u")
        assert written(explorer) == greedy(3)
        # a token by hand takes the place of the text after it
        await explorer.press("left", "left", "left")
        await explorer.press("down", "down", "enter")
        text = written(explorer)
        state = screen(explorer).writing.draft.states[0]
        assert text == (*state.ids, int(np.argsort(-state.logits, kind="stable")[2]))
        await explorer.press("left")
        assert "chosen by hand" in explorer.text
        # moving in the list before it has come moves in the one that comes
        async with explorer.waiting():
            await explorer.keys("right", "left", "down", "down")
        tokens = explorer.app.screen.query_one(LineList)
        assert tokens.cursor == 4
        await explorer.press("right")
        assert tokens.cursor == 0
        # also where they are pressed ahead, behind keys that wait for a token
        async with explorer.waiting():
            await explorer.keys("space", "left", "left", "down", "down")
        assert (tokens.cursor, len(written(explorer))) == (4, len(text) + 1)
        await explorer.press("u")
        assert written(explorer) == greedy(3)
        await explorer.press("U")
        assert written(explorer)[:-1] == text


async def test_settings_are_on_the_screen_and_say_what_they_cut_off_and_what_cannot_be():
    async with exploring(WIDE, model="decoder") as explorer:
        await explorer.press("W")
        for key, value in {"top_p": "1.5", "seed": "1,5", "top_k": "-1", "temperature": "nan"}.items():
            await set_numbers(explorer, **{key: value})
            assert re.search(rf"│ +{key} '?{value}'? is not", explorer.text)
            await explorer.press("escape")
            assert "greedy" in explorer.text.splitlines()[0]
        await set_numbers(explorer, temperature="0.8", top_k="5", top_p="0.7", seed="3")
        assert "T 0.8 · top-k 5 · top-p 0.7 · seed 3" in explorer.text.splitlines()[0]
        shares = screen(explorer).writing.draft.state.probabilities
        assert f"{np.count_nonzero(shares)} of 8 can be chosen" in explorer.text
        assert explorer.text.count("cut by top-k 5") == 3
        assert explorer.text.count("cut by top-p 0.7") == 5 - np.count_nonzero(shares)
        # without a cache every row is computed again
        await explorer.press("comma", "up", "right", "ctrl+s", "space")
        assert "kept 0   ● computed now 9" in explorer.text
        assert "no cache" in explorer.text.splitlines()[0]


async def test_the_same_seed_writes_the_same_text():
    texts = []
    async with exploring(NARROW, model="decoder") as explorer:
        for seed in ("1", "1", "2"):
            await explorer.press("W")
            await set_numbers(explorer, temperature="2", seed=seed)
            await explorer.press(*["space"] * 8)
            texts.append(written(explorer))
            await explorer.press("escape")
    assert len(texts[0]) == 16
    assert texts[0] == texts[1] != texts[2]


async def test_another_layer_that_a_key_asks_for_while_a_token_is_computed_is_that_of_the_new_text():
    async with exploring(WIDE, model="story", text="Mira found a") as explorer:
        await explorer.open("generate")
        screen = await explorer.front(GenerateScreen)
        async with explorer.waiting():
            await explorer.keys("n", "}")
        draft, shown = screen.writing.draft, screen.view.shown
        assert draft is not None
        assert draft.place == 1
        assert (shown.draft, shown.layer) == (draft, 1)
        assert f"Position {len(draft.ids)}:" in explorer.text
        assert "KV cache · layer 1 of" in explorer.text


async def test_writing_on_ends_by_itself_and_esc_halts_it_and_a_key_for_a_screen_that_is_gone_does_nothing():
    async with exploring(WIDE, model="decoder") as explorer:
        await explorer.press("W")
        await set_numbers(explorer, max_new_tokens="6")
        await explorer.press("N")
        await explorer.until(lambda: len(written(explorer)) == 14)
        await explorer.shown("the text ends, 6 new tokens, as asked")
        await set_numbers(explorer, max_new_tokens="2000")
        await explorer.keys("N")
        await explorer.until(lambda: len(written(explorer)) > 20)
        await explorer.press("escape")
        count = len(written(explorer))
        await explorer.press("down")
        assert len(written(explorer)) == count < 2000
        await explorer.press("escape")
        assert not isinstance(explorer.app.screen, GenerateScreen)
        await explorer.press("W")
        left = await explorer.front(GenerateScreen)
        await explorer.leave()
        for action in ("turn_back('undo')", "leave"):
            assert await explorer.app.run_action(action, left)
        assert not explorer.app.failures.told


async def test_the_text_is_written_to_a_file_but_not_to_one_that_says_it_is_something_else_and_settings_are_copied(
    tmp_path,
):
    async with exploring(NARROW, model="decoder") as explorer:
        await explorer.press("W", "space", "x")
        await explorer.answer(str(tmp_path / "text.svg"))
        assert "a text is no .svg file" in explorer.text
        assert not list(tmp_path.iterdir())
        await explorer.answer(str(tmp_path / "text.txt"))
        model = Model.load("decoder")
        assert (tmp_path / "text.txt").read_text() == model.tokenizer.decode(greedy(1)) + "\n"
        await explorer.leave()
        await explorer.press("W")
        await set_numbers(explorer, temperature="0.12345678", top_p="0.87654321", seed="1234567")
        settings = screen(explorer).writing.draft.settings
        assert (settings.temperature, settings.top_p, settings.seed) == (0.12345678, 0.87654321, 1234567)
        await set_numbers(explorer)
        await set_numbers(explorer, top_k="3")
        assert screen(explorer).writing.draft.settings == replace(settings, top_k=3)
        await explorer.press("y")
        line = explorer.app.clipboard
        assert "--temperature 0.12345678 --top-p 0.87654321 --top-k 3 --sample-seed 1234567" in line


async def test_a_model_that_does_not_write_says_so():
    async with exploring(NARROW, model="encoder") as explorer:
        await explorer.press("W")
        assert explorer.messages == ["this model does not write: only a decoder, with logits for the next token, does"]


async def test_an_encoder_decoder_shows_its_source_and_grows_its_target_from_the_start_token():
    async with exploring(WIDE, model="encoder-decoder", decoder_text="") as explorer:
        await explorer.press("W")
        start = written(explorer)
        assert len(start) == 1
        assert re.search(r"source +the waves crashed", explorer.text)
        assert "8 source tokens" in explorer.text
        assert "computed once" in explorer.text
        await explorer.press("space", "space")
        assert len(written(explorer)) == 3
        await explorer.press("E")
        model = Model.load("encoder-decoder")
        writer = Writer(model, Settings(greedy=True, max_new_tokens=2), source=prompt_of(model))
        assert explorer.session.decoder_encoding.ids == list(writer.run(writer.begin()))[-1].ids


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"COLORTERM": "", "TERM": "xterm"}])
async def test_every_size_shows_the_text_the_tokens_and_the_cache_without_colour_and_in_16(variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with exploring(WIDE, model="decoder") as explorer:
        await explorer.press("W", "space", "space")
        for sign in ("■", "●", "·", "▸"):
            assert sign in explorer.text
        async for size in explorer.sizes(WIDE, MEDIUM, NARROW, (60, 20), SMALL):
            assert "Position 10" in explorer.text
            assert "▸" in explorer.text
            turns = ["tab"] * ("KV cache" not in explorer.text)
            await explorer.press(*turns)
            assert "KV cache · layer 0 of 1" in explorer.text
            assert "●" in explorer.text
            assert all(strip.cell_length == size[0] for strip in explorer.app.screen._compositor.render_strips())
            await explorer.press(*turns)
        # the help, with formulas and their sources
        await explorer.resize(100, 90)
        await explorer.press("question_mark")
        for words in ("softmax(z ÷ T)", "Holtzman", "Fan", "Pope", "d_k"):
            assert words in explorer.text


def with_rules(folder: Path, **rules: object) -> str:
    """The decoder as a checkpoint whose folder has rules of generation."""
    Model.load("decoder").save(folder)
    (folder / "generation_config.json").write_text(json.dumps(rules))
    return str(folder)


async def test_tokens_that_rules_forbid_say_which_rule_and_can_be_chosen_by_hand(tmp_path: Path):
    async with exploring(WIDE, model=with_rules(tmp_path / "m", suppress_tokens=[3, 5])) as explorer:
        await explorer.press("W")
        assert explorer.text.count("cut by suppress_tokens") == 2
        assert "suppress_tokens cuts 2" in explorer.text
        await explorer.press("space")
        assert written(explorer)[-1] not in (3, 5)
        listed = [choice.token for choice in screen(explorer).view.shown.choices]
        explorer.app.screen.query_one(LineList).cursor = listed.index(3)
        await explorer.press("enter")
        assert written(explorer)[-1] == 3


async def test_a_token_that_a_rule_forces_says_so_where_it_is_forced(tmp_path: Path):
    async with exploring(WIDE, model=with_rules(tmp_path / "m", forced_eos_token_id=6)) as explorer:
        await explorer.press("W")
        await set_numbers(explorer, max_new_tokens="2")
        assert "forced" not in explorer.text
        await explorer.press("space")
        assert re.search(r"▸ shore · forced +6 █+", explorer.text)
        assert explorer.text.count("cut by forced_eos_token_id") == 7
        await explorer.press("space")
        assert written(explorer)[-1] == 6


async def test_query_heads_are_drawn_under_the_key_head_that_they_share():
    model = str(REFERENCES / "qwen3")
    async with exploring(WIDE, model=model, text="The waves crashed") as explorer:
        await explorer.press("W", "space")
        lines = explorer.text.splitlines()
        at = next(i for i, line in enumerate(lines) if "K0 ← q0 q1" in line)
        assert ["q0" in lines[at + 1], "q1" in lines[at + 2], "K1 ← q2 q3" in lines[at + 4]] == [True] * 3
        assert "4 query heads read 2 key heads: 1/2 of the memory of 4" in explorer.text
        writing, view = screen(explorer).writing, screen(explorer).view
        weights = writing.draft.writer.trace(writing.draft.state)["decoder.0.self_attention.weights"]
        assert np.array(view.shown.picture.attention) == pytest.approx(weights[:, -1])
        await explorer.press("right_curly_bracket")
        assert "KV cache · layer 1 of 2" in explorer.text
        weights = writing.draft.writer.trace(writing.draft.state)["decoder.1.self_attention.weights"]
        assert np.array(view.shown.picture.attention) == pytest.approx(weights[:, -1])


@pytest.mark.parametrize("words", KINDS.values(), ids=KINDS.keys())
async def test_strange_words_are_written_harmlessly(words: list[str], tmp_path: Path):
    vocabulary = tmp_path / "odd.txt"
    words = [word.replace("\x00", "") for word in words]
    vocabulary.write_text(" ".join(words), encoding="utf-8")
    async with exploring(WIDE, model="decoder", vocab=str(vocabulary), text=" ".join(words[:3])) as explorer:
        await explorer.press("W")
        for key in ("space", "space", "down", "enter", "left", "right", "space"):
            await explorer.press(key)
            check_screen(explorer)


async def test_esc_ends_a_long_prompt_before_its_next_step(monkeypatch):
    reached, going = [], threading.Event()
    compute = Trace.compute

    def slowly(trace, names=None, before=None):
        def watch(step):
            reached.append(step.name)
            if step.name.endswith(".scores"):
                going.wait(PATIENCE)
            before(step)

        compute(trace, names, watch)

    async with exploring(NARROW, model="decoder", sizes={"layers": 3}) as explorer:
        with monkeypatch.context() as patched:
            patched.setattr(Trace, "compute", slowly)
            await explorer.keys("W")
            await explorer.until(lambda: reached and reached[-1] == "decoder.0.self_attention.scores")
            await explorer.shown("8 tokens of the prompt: decoder.0.self_attention.")
            explorer.send("escape")
            await explorer.until(lambda: explorer.app.screen is explorer.main)
            going.set()
            await explorer.settled()
        assert reached[-1] == "decoder.0.self_attention.scores"


async def test_a_draw_is_told_with_its_number_and_the_sums_that_it_fell_between():
    async with exploring(WIDE, model="story", text="Once there was") as explorer:
        await explorer.press("W")
        assert "r = " not in explorer.text
        await set_numbers(explorer, temperature="0.8")
        await explorer.shown("r = ", "falls between", "the share of")


async def test_the_text_is_written_under_the_edits_of_the_explorer_and_opens_with_them():
    async with exploring(WIDE, model="decoder", sizes={"layers": 1}) as explorer:
        plain = explorer.session
        name = "decoder.0.self_attention.context"
        heads, _, width = plain.trace.program.shape(name)
        edited = plain.with_edits(Ablate(name, (range(heads), range(len(plain.encoding.ids)), range(width))))
        await explorer.change(edited)
        await explorer.press("W", "space", "space")
        assert "the model writes with the edits of the explorer" in explorer.messages[-1]
        writer = Writer(plain.model, Settings(greedy=True), edits=[Set("0.self_attention.context", 0.0)])
        states = writer.run(writer.begin(plain.encoding.ids))
        ids = [next(states).ids for _ in range(3)][-1]
        assert written(explorer) == ids
        await explorer.press("E")
        assert (explorer.session.trace[name] == 0).all()
        assert "decoder.0.self_attention.context → 0" in explorer.text
