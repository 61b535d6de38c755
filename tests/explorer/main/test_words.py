"""Words: of the vocabulary, of the text at the end and of the steps; pieces, masks and pairs of sentences."""

from __future__ import annotations

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES
from textual import events
from textual.widgets import Static

from tui_transformer.engine.edits import Edit
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.lines import step_words
from tui_transformer.explorer.main.panes.matrix import TextPane, VocabularyPane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.edit_format import changes
from tui_transformer.session.session import TEXT
from tui_transformer.text.vocabulary import Vocabulary

WEIGHT = "embedding.tokens.weight"


async def test_a_word_is_found_and_its_embedding_shown():
    async with exploring(WIDE, vocab="english") as explorer:
        words, explored = explorer.session.model.vocabulary, explorer.parts.explored
        entries = explorer.main.query_one(VocabularyPane).entries
        async for size in explorer.sizes(WIDE, SMALL):
            await explorer.press("ctrl+f", "ctrl+u", *"sea", "enter")
            assert entries.has_focus
            assert "sea" in explorer.text
            assert (" found" in explorer.text) == (size != SMALL)
            await explorer.press("enter")
            assert explorer.stop == WEIGHT
            assert explorer.position.place.row == words.ids["sea"]
            assert WEIGHT in explorer.text
            await explorer.press("escape")
            assert explorer.stop == "vocabulary"
            assert entries.has_focus
        # escape leaves the search before it leads back where one came from
        explored.trail[:] = [explored.position, explored.position]
        await explorer.press("ctrl+f", "s", "escape")
        assert entries.has_focus
        assert len(explored.trail) == 2
        await explorer.press("escape")
        assert len(explored.trail) == 1


async def test_the_words_of_a_trained_model_are_called_by_its_name_and_begin_with_those_of_the_sentence():
    async with exploring(NARROW, model="question") as explorer:
        assert "Vocabulary · question · 123 words" in explorer.text
        entries, used = explorer.main.query_one("#vocabulary"), list(dict.fromkeys(explorer.session.encoding.ids))
        shown = [entries._entry(i) for i in range(explorer.session.model.vocabulary.size)]
        assert shown[: len(used)] == used
        assert sorted(shown) == list(range(len(shown)))
        assert shown[len(used) :] == sorted(shown[len(used) :])


async def test_the_words_of_the_sentence_are_marked_and_found():
    async with exploring(NARROW) as explorer:
        # letters that are typed into the search do nothing else
        await explorer.press("ctrl+f", *"qsnpev{/,xt")
        assert explorer.stop == "vocabulary"
        assert explorer.focused_input.value == "qsnpev{/,xt"
        assert "0 found" in explorer.text
        await explorer.press("enter", "enter", "ctrl+f", "ctrl+u", "enter")
        assert "found" not in explorer.text
        assert "crashed" in explorer.text
        # words are marked as the sentence changes
        assert "in the sentence × 2" in explorer.text
        await explorer.prompt("/", "shore shore shore")
        assert "in the sentence × 3" in explorer.text


@pytest.mark.parametrize("size", [pytest.param(WIDE, marks=pytest.mark.slow), NARROW])
async def test_a_large_vocabulary_is_gone_through_with_what_is_on_screen_only(size, tmp_path, monkeypatch):
    path, count = tmp_path / "large.txt", 250_000
    path.write_text(" ".join(f"word{i}" for i in range(1, count)))
    async with exploring(size, vocab=str(path), text="word1 word2 word3 word249999") as explorer:
        asked, word = list[int](), Vocabulary.word
        monkeypatch.setattr(Vocabulary, "word", lambda self, number: asked.append(number) or word(self, number))
        # of the words of the sentence, which come first, one was the last
        page = 5 * (explorer.main.query_one(VocabularyPane).entries.size.height - 1)
        for keys, last in ((["end"], count - 1), (["home"], 0), (["pagedown"] * 5, page - 1)):
            await explorer.keys(*keys)
            assert f"{last}  " in explorer.text
        assert len(asked) < 1000
        await explorer.keys("ctrl+f", "7")
        await explorer.keys("7")
        assert f"{sum('77' in str(i) for i in range(count)):,} found" in explorer.text
        await explorer.press("escape")
        for key in ["space"] * 12 + ["backspace"] * 12 + ["]", "end", "G", "5", "down", "1", "4", "6", "c", "c", "4"]:
            before = len(asked)
            await explorer.keys(key)
            assert len(asked) - before < 2000
        await explorer.press("ctrl+f", "ctrl+u", *"word249999", "enter", "enter")
        assert explorer.position.place.row == 249_999
        await explorer.press("G", "w", "e", "escape")


async def test_the_temperature_changes_the_table_and_nothing_else():
    async with exploring(WIDE, model="decoder", at=TEXT) as explorer:
        await explorer.press("4")
        logits = explorer.session.trace["output.logits"][0].astype(float)
        session = explorer.session
        await explorer.shown("softmax(logits ÷ T), T = 1")
        for key, temperature in (("-", 0.9), ("-", 0.8), ("+", 0.9), ("=", 1), ("+", 1.2)):
            await explorer.press(key)
            scaled = np.exp(logits / temperature)
            async for _ in explorer.sizes(MEDIUM, NARROW, WIDE):
                await explorer.shown(f"T = {temperature:g} ", percent(scaled.max() / scaled.sum()))
        assert explorer.session is session
        # the coldest takes the most likely word alone
        await explorer.resize(*NARROW)
        await explorer.press("=", *["-"] * 12)
        await explorer.shown("T = 0 (limit)", "100.0 %", " 0 %")


async def test_a_model_that_tells_lines_apart_has_one_answer():
    async with exploring(NARROW, model="question", text="what did the old sailor hide ?", at=TEXT) as explorer:
        await explorer.shown("at the first token, where this model answers")
        await explorer.settled()
        assert explorer.text.count("statement") == 1


async def test_a_model_that_writes_on_has_a_row_for_what_follows_each_word():
    async with exploring(WIDE, model="story", text="Once there was a small girl", at=TEXT) as explorer:
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.shown("a small girl”", "“ called”")
            row = next(line for line in explorer.text.splitlines() if "small girl”" in line and "after" in line)
            share = float(explorer.session.trace["output.probabilities"][-1].max())
            assert percent(share) in row
            assert row.index("“ called”") > row.index("girl”")
        # cells of the lens have their probability
        await explorer.resize(*WIDE)
        await explorer.prompt("/", "Once there was a small")
        await explorer.press("L")
        await explorer.shown("all words on screen")
        await explorer.shown(percent(float(explorer.session.trace["output.probabilities"][0].max())))


async def test_targets_are_completed_from_the_vocabulary():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("B")
        await explorer.write("stat")
        await explorer.shown("tab: station", "statement")
        await explorer.write("state")
        await explorer.shown("tab: statement")
        await explorer.press("tab")
        assert explorer.focused_input.value == "statement"


async def test_rows_that_there_is_no_room_for_are_scrolled_to():
    async with exploring(NARROW, model="encoder", text="the waves crashed " * 80, at=TEXT) as explorer:
        await explorer.shown("@0 ")
        assert "@199" not in explorer.text
        await explorer.press("4", "end")
        await explorer.shown("@199", "40 more places have no row here")
        await explorer.press("home")
        await explorer.shown("@0 ")
        await explorer.press("pagedown")
        await explorer.until(lambda: "@0 " not in explorer.text and "@199" not in explorer.text)


async def test_a_text_is_folded_for_the_columns_beside_its_scroll_bar():
    text = "the waves crashed forcefully against the shore ! " * 4
    async with exploring((120, 36), text=text, sizes={"layers": 1, "d_model": 16, "heads": 2}, at=TEXT) as explorer:
        pane = explorer.main.query_one(TextPane)
        assert pane.show_vertical_scrollbar
        await explorer.press("+", "-")  # drawn again, beside the bar
        lines = str(pane.query_one("#words", Static).visual).split("\n")
        assert max(map(len, lines[1 : lines.index("")])) <= pane.scrollable_content_region.width


@pytest.mark.parametrize("model", ["question", "story", "copy"])
async def test_where_the_logits_are_no_numbers_no_word_is_the_likeliest(model):
    async with exploring(NARROW, model=model) as explorer:
        session = explorer.session
        edit = changes(session.model, session.base.program, ["embedding.output[1,2] = inf"])
        await explorer.change(session.with_edits(*edit))
        assert explorer.text.splitlines()[-1].strip().startswith("no number ")  # the answer
        await explorer.go(TEXT)
        await explorer.shown("no number")
        assert "[PAD]" not in explorer.text
        assert "nan" not in explorer.text


PIECES = "The waves 😊!"
SAYS = {
    "gpt2": {1: "␣wa 291: wa, after a space · covers “ wa” at 3–6", 4: "ĺ 247: byte 98 · covers “😊” at 10–11"},
    "bert": {0: "[CLS] 2 · added", 3: "##ves 132: ves, inside a word · covers “ves” at 6–9"},
    "t5": {3: "␣wa 32: wa, after a space · covers “ wa” at 3–6"},
}


def on_screen(text: str) -> str:
    """Without the cells that a wide character takes twice."""
    return " ".join(text.split())


@pytest.mark.parametrize("family", SAYS)
async def test_the_piece_under_the_cursor_is_explained(family):
    async with exploring(WIDE, model=str(REFERENCES / family), text=PIECES, at="embedding.tokens") as explorer:
        for row, said in SAYS[family].items():
            await explorer.press(*["down"] * (row - explorer.position.place.row))
            assert said in on_screen(explorer.text)


async def test_whole_words_need_no_explanation():
    async with exploring(WIDE, at="embedding.tokens") as explorer:
        assert "covers" not in explorer.text


async def test_characters_that_several_pieces_share_are_written_once():
    async with exploring(NARROW, model=str(REFERENCES / "gpt2"), text="naïve 😊!") as explorer:
        async for _ in explorer.sizes(NARROW, MEDIUM):
            assert "naïve 😊!" in on_screen(explorer.text)


async def test_the_vocabulary_explains_its_pieces():
    async with exploring(WIDE, model=str(REFERENCES / "bert"), text=PIECES) as explorer:
        await explorer.press("ctrl+f", *"ves", "enter")
        async for _ in explorer.sizes(WIDE, NARROW, SMALL):
            assert "##ves             ves, ins" in explorer.text


async def test_a_word_outside_the_vocabulary_is_drawn_as_what_stands_for_it_and_counted():
    async with exploring((100, 30), model="question", text="where did the zebra hide the giraffe ?") as explorer:
        text = explorer.text
        assert "[UNK] zebra 1 @3" in text
        assert "2 unknown words" in text


async def test_a_part_of_the_sentence_is_selected_with_the_mouse_and_seen_as_such() -> None:
    async with exploring(WIDE, model="question") as explorer:
        pane = explorer.main.query_one(SentencePane).region
        left, top = pane.x + 2, pane.y + 1
        before = strip_at(explorer, top)
        for kind, to in ((events.MouseDown, 0), (events.MouseMove, 9), (events.MouseUp, 9)):
            explorer.app.post_message(kind(None, left + to, top, 0, 0, 1, False, False, False))
            await explorer.handled()
        assert explorer.app.screen.get_selected_text() == "where did "
        both = before, strip_at(explorer, top)
        grounds = [{part.style.bgcolor for part in line.crop(left, left + 9)} for line in both]
        assert grounds[0].isdisjoint(grounds[1])


def strip_at(explorer, line: int):
    return explorer.app.screen._compositor.render_strips()[line]


async def test_the_token_that_is_clicked_behind_accents_and_parts_of_an_emoji_is_the_one_that_stands_there() -> None:
    async with exploring(
        WIDE, model="question", text="👍🏽 the me\u0301me\u0301 fox the map", at="embedding.output"
    ) as explorer:
        pane = explorer.main.query_one(SentencePane)
        left, top = pane.content_region.offset
        for column, row in ((3, 0), (12, 2), (16, 3), (20, 4), (7, 1)):
            assert pane.render_line(0).text.startswith("👍🏽 the me\u0301me\u0301 fox the map")
            await explorer.click_at(left + column, top)
            assert explorer.position.place.row == row, column


SIZES = (NARROW, MEDIUM, WIDE)


def words_in_pane(explorer: Explorer) -> str:
    """All lines of the pane of the cell, as far as they are drawn."""
    pane = explorer.main.query_one(CellPane)
    lines = ["".join(text for text, _ in pane.line_at(index)) for index in range(pane.extent[0])]
    lines = [line[: pane.size.width - 1] for line in lines]
    return "".join("".join(lines).split())


@pytest.mark.parametrize(
    ("model", "sizes"),
    [("question", SIZES), ("encoder-decoder", (NARROW,)), ("decoder", (MEDIUM,)), ("story", (WIDE,))],
)
async def test_words_of_every_step_are_read_beside_its_numbers(model, sizes):
    async with exploring(sizes[0], model=model, whole=model == "question" or None) as explorer:
        async for _ in explorer.sizes(*sizes):
            await explorer.press("5")
            said = {step_words(explorer.session, stop): stop for stop in reversed(explorer.session.stops)}
            for words, stop in said.items():
                await explorer.go(stop)
                shown = words_in_pane(explorer)
                for part in (words.what, words.why, words.look):
                    assert "".join(part.split()) in shown, stop


async def test_the_help_begins_with_them():
    async with exploring(NARROW, model="question", whole=None, at="encoder.0.self_attention.scaled") as explorer:
        words = step_words(explorer.session, explorer.stop)
        await explorer.press("?", "enter")
        async for _ in explorer.sizes(*SIZES):
            box = explorer.app.screen.query_one("#box").content_region
            lines = explorer.text.splitlines()[box.y : box.bottom]
            page = " ".join(" ".join(line[box.x : box.right - 1] for line in lines).split())  # without the scroll bar
            assert all(part in page for part in (words.what, words.why, words.look))


BERT = ModelOptions(str(REFERENCES / "bert"))
LLAMA = ModelOptions(str(REFERENCES / "llama"), device="cpu")
MASK = (0, 0, 1, 1, 1)


def session():
    return open_session(LLAMA, None, (2, 2, 12, 10, 9), mask=MASK)


def test_a_mask_is_kept_when_cells_are_edited():
    edited = session().with_edits(Edit("embedding.output", (3, 0), 1.0))
    assert edited.trace["input.visible"].tolist() == [False, False, True, True, True]
    assert np.isfinite(edited.trace["output.logits"]).all()
    assert not edited.trace["decoder.0.self_attention.weights"][:, 2:, :2].any()


def test_a_mask_stays_for_as_many_tokens_and_goes_with_others():
    first = session()
    same = first.with_text("waves waves a")
    assert (len(same.encoding.ids), same.mask) == (len(MASK), MASK)
    assert first.with_text("waves").mask is None


async def test_hidden_tokens_are_shown_as_masked():
    async with exploring(WIDE, session=session()) as explorer:
        assert explorer.session.mask == MASK
        assert explorer.session.trace["input.places"].tolist() == [0, 0, 0, 1, 2]


async def test_both_sentences_are_shown_and_have_segments():
    session = open_session(BERT, "The waves", None, pair="a shore")
    async with exploring(WIDE, session=session) as explorer:
        assert "The waves a shore" in explorer.text
        assert explorer.session.encoding.segments[-1] == 1
        await explorer.prompt("/", "A dog")
        assert "A dog a shore" in explorer.text
