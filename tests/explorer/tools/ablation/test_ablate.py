"""Ablation in the explorer: the table of effects, and single heads and positions from the main screen."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from driving import NARROW, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer import Set
from tui_transformer.analysis import effects as measured
from tui_transformer.analysis.metrics import Metric
from tui_transformer.engine.targets import every
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools import effects as effect_search
from tui_transformer.explorer.tools.ablation import AblateScreen
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import percent, signed_percent
from tui_transformer.text.display import token_label

GPT2 = {"model": str(REFERENCES / "gpt2"), "text": "the waves crashed against the shore"}


async def complete(explorer: Explorer, *keys: str) -> AblateScreen:
    """The table when all of it is there, after these keys."""
    await explorer.press(*keys)
    return await explorer.front(AblateScreen, lambda screen: not screen.search.missing)


def rows(explorer: Explorer) -> list[tuple[str, list[str], int]]:
    """Name, numbers and bar, negative to the left, of every line on the screen."""
    pattern = r"^│ (\S.*?) {2,}([+−\d][^│]*?) *(?:([◂╺━]*)│)?([━╸▸]*) *[▅▃]?.?│$"
    lines = re.findall(pattern, explorer.text, re.MULTILINE)
    return [(name, re.split(" {2,}", numbers), len(right) - len(left)) for name, numbers, left, right in lines]


async def test_the_table_lists_every_head_by_its_effect_which_is_not_computed_again(monkeypatch) -> None:
    async with exploring(WIDE, **GPT2) as explorer:
        await complete(explorer, "A")
        trace = explorer.session.trace
        ranked = sorted(measured.effects(trace, every(trace.program)), key=lambda pair: -pair[1].size)
        assert len(ranked) == 8
        expected = []
        for target, effect in ranked:
            name = f"layer {target.place.split('.')[1]} · head {target.number}"
            numbers = [f"{effect.change:+.4f}", f"{effect.divergence:.4f}", signed_percent(np.expm1(effect.change))]
            expected.append((name, [number.replace("-", "−") for number in numbers]))
        async for size in explorer.sizes(WIDE, NARROW):
            shown = rows(explorer)
            assert [row[:2] for row in shown] == expected
            assert "8 of 8 heads" in explorer.text
            assert "full bar ±1 nat" in explorer.text
            room = (explorer.app.screen.search._bar_width(size[0] - 2) - 1) // 2
            for (_, effect), (_, _, bar) in zip(ranked, shown, strict=True):  # on a scale that no other line changes
                assert bar == pytest.approx(min(max(effect.change, -1.0), 1.0) * room, abs=1)
            await explorer.press("r")
            assert [row[0] for row in rows(explorer)] == [name for name, _ in reversed(expected)]
            assert "smallest effect first" in explorer.text
            await explorer.press("r")
        # left and opened again
        await explorer.press("escape")
        monkeypatch.setattr(effect_search, "effects", lambda *_, **__: pytest.fail("computed again"))
        await complete(explorer, "A")
        assert rows(explorer) == shown


async def test_a_key_goes_through_layers_positions_and_neurons() -> None:
    async with exploring(WIDE, **GPT2, at="decoder.1.self_attention.norm") as explorer:
        await complete(explorer, "A", "f")
        assert sorted(row[0] for row in rows(explorer)) == ["layer 0", "layer 1"]
        await complete(explorer, "f")
        tokens = [explorer.session.model.label(token.text) for token in explorer.session.encoding.tokens]
        assert sorted(row[0] for row in rows(explorer)) == sorted(
            f"{i} {token_label(word)}" for i, word in enumerate(tokens)
        )
        await complete(explorer, "}")
        assert "positions entering decoder.1" in explorer.text
        screen = await complete(explorer, "f")
        assert "neurons of decoder.1.feed_forward" in explorer.text
        assert "128 of 128 neurons" in explorer.text
        target = screen.selected
        ((_, effect),) = measured.effects(explorer.session.trace, [target])
        largest = max(screen.search.known.effects[each].size for each in screen.search.targets)
        assert effect.size == pytest.approx(largest, rel=1e-5)
        await explorer.press("f")
        assert "8 of 8 heads" in explorer.text
        # a layer is two edits and one undo
        await explorer.press("f", "enter")
        assert len(explorer.session.edits) == 2
        assert "2 edits, last decoder." in explorer.text
        await explorer.press("u")
        assert not explorer.session.edits


async def test_means_instead_of_zeros_and_all_positions() -> None:
    async with exploring(WIDE, **GPT2) as explorer:
        await complete(explorer, "A")
        zero = rows(explorer)
        await complete(explorer, "M")
        trace = explorer.session.trace
        assert "set to its mean over the positions" in explorer.text
        largest = max(measured.effects(trace, every(trace.program), mean=True), key=lambda pair: pair[1].size)
        assert rows(explorer)[0][1][1] == f"{largest[1].size:.4f}"
        assert rows(explorer) != zero
        await complete(explorer, "M", "*")
        positions = range(trace.program.shape("tokens")[0])
        largest = max(measured.effects(trace, every(trace.program), positions=positions), key=lambda pair: pair[1].size)
        assert rows(explorer)[0][1][1] == f"{largest[1].size:.4f}"
        assert f"positions 0 to {positions.stop - 1}" in explorer.text


async def test_a_mean_in_place_of_an_edit_of_the_same_head_has_the_effect_that_it_has_when_it_is_kept() -> None:
    session = open_session(ModelOptions("story"), "the fox found a crow")
    session = session.with_edits(Set("decoder.0.self_attention.context", 0.3, heads=1))
    async with exploring(WIDE, session=session) as explorer:
        screen = await complete(explorer, "A", "M")
        for target in screen.search.targets:
            kept = session.with_edits(*target.edits(session.trace.program, mean=True))
            effect = measured.effect(session.trace, kept.trace, screen.search.positions)
            assert screen.search.known.effects[target].change == pytest.approx(effect.change, abs=1e-5), target


async def test_enter_makes_the_ablation_beside_what_was_before() -> None:
    async with exploring(WIDE, **GPT2) as explorer:
        base = explorer.session
        screen = await complete(explorer, "A")
        await explorer.press("down")
        target = screen.selected
        await explorer.press("enter")
        context = f"{target.place}.context"
        assert explorer.stop == context
        assert explorer.position.place.head == target.number
        assert not explorer.session.trace[context][target.number].any()
        assert explorer.session.trace[context].any()
        assert f"{target.place} head {target.number} → 0" in explorer.text
        assert "before the edits" in explorer.text
        compared = explorer.session.comparison
        assert compared.first == context
        assert compared.differences["output.logits"].largest > 0

        before, after = (trace["output.probabilities"][-1] for trace in (base.trace, explorer.session.trace))
        message = explorer.messages[-1]
        for shares in (before, after):
            best = int(shares.argmax())
            assert percent(shares[best]) in message
            assert base.model.word(best).strip("Ġ") in message
        change = np.log(after[before.argmax()]) - np.log(before.max())
        assert f"{change:+.3g}".replace("-", "−") in message

        await explorer.press("u")
        assert explorer.session is base
        assert "before the edits" not in explorer.text


async def test_ablations_add_up_and_the_table_stands_on_them() -> None:
    async with exploring(NARROW, **GPT2) as explorer:
        await complete(explorer, "A")
        await explorer.press("enter")
        assert "1 edit " in explorer.text
        first = explorer.session.edits
        screen = await complete(explorer, "A")
        assert "on top of 1 edit" in explorer.text
        await explorer.press("end")
        target = screen.selected
        assert f"layer {target.place.split('.')[1]} · head {target.number}" == rows(explorer)[-1][0]
        assert screen.search.known.effects[target].size < 1e-9, "what is ablated already has no effect"
        await explorer.press("up", "enter")
        assert "2 edits" in explorer.text
        assert explorer.session.edits[:1] == first
        await explorer.press("u")
        assert explorer.session.edits == first


async def test_the_cursor_stays_on_its_row_while_the_list_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Semaphore(0)
    real = measured.effects

    def slowly(*args: object, **options: object) -> object:
        for pair in real(*args, **options):
            go.acquire()
            yield pair

    monkeypatch.setattr(effect_search, "effects", slowly)
    monkeypatch.setattr(effect_search, "PAUSE", 0.0)
    async with exploring(NARROW, **GPT2) as explorer:
        screen = AblateScreen(explorer.parts.port)
        explorer.parts.port.open(screen)
        go.release(3)
        await explorer.until(lambda: len(rows(explorer)) == 3)
        await explorer.keys("down", "down")
        chosen = screen.selected
        go.release(3)
        await explorer.until(lambda: len(rows(explorer)) == 6)
        await explorer.shown("6 of 8 heads · esc ends")
        assert screen.selected == chosen
        await explorer.keys("escape")
        go.release(1)
        assert explorer.app.screen is screen
        assert "6 of 8 heads · ended" in explorer.text
        go.release(10)
        await complete(explorer, "N")
        assert len(rows(explorer)) == 8
        assert screen.selected == chosen
        assert "8 of 8 heads" in explorer.text
        await explorer.leave()


async def test_an_encoder_beside_a_decoder_has_heads_of_three_kinds() -> None:
    session = open_session(ModelOptions(str(REFERENCES / "t5")), None, (5, 9, 12, 7), decoder_ids=(0, 8, 3))
    async with exploring(WIDE, session=session) as explorer:
        await complete(explorer, "A")
        names = {row[0] for row in rows(explorer)}
        assert {"encoder layer 0 · head 0", "decoder layer 1 · head 3", "decoder layer 1 · cross · head 2"} <= names
        assert "24 of 24 heads" in explorer.text


async def test_a_model_without_words_shows_relative_changes_and_nothing_else() -> None:
    async with exploring(WIDE, model="attention") as explorer:
        await complete(explorer, "A")
        trace = explorer.session.trace
        largest = max(measured.effects(trace, every(trace.program)), key=lambda pair: pair[1].size)
        assert rows(explorer)[0][1] == [f"{largest[1].size:.4f}"]
        assert "relative" in explorer.text
        await explorer.press("#")
        assert "no logits of words" in explorer.messages[-1]
        await explorer.press("enter")
        assert explorer.messages[-1].startswith("relative change of ")


async def test_what_is_measured_is_chosen_in_the_table_and_holds_for_patches() -> None:
    async with exploring(WIDE, **GPT2) as explorer:
        await complete(explorer, "A")
        # the loss on the targets, read at every position
        await complete(explorer, "#", "left", "enter")
        assert "loss on the targets" in explorer.text
        trace = explorer.session.trace
        metric = Metric("loss", (), explorer.session.loss_targets)
        assert f"{metric.measure(trace, trace, range(1)):.4f} as it is" in explorer.text
        assert " positions" not in explorer.text.splitlines()[-1]
        # the difference of two words
        await explorer.press("#")
        await explorer.press("left", "down")
        assert "logit difference is about two words" in explorer.text
        await explorer.write("30 35")
        words = [explorer.session.model.word(each) for each in (30, 35)]
        assert f"logit of {words[0]} less that of {words[1]}" in explorer.text
        await complete(explorer, "enter")
        metric = Metric("difference", (30, 35))
        ranked = sorted(measured.effects(trace, every(trace.program), metric=metric), key=lambda pair: -pair[1].size)
        signs = [[f"{effect.value:.4f}", f"{effect.change:+.4f}"] for _, effect in ranked]
        assert [row[1] for row in rows(explorer)] == [[sign.replace("-", "−") for sign in pair] for pair in signs]
        last = range(len(trace["output.logits"]) - 1, len(trace["output.logits"]))
        own = f"{metric.measure(trace, trace, last):.4f}".replace("-", "−")
        assert f"less that of {words[1]} {own} as it is at position" in explorer.text
        await explorer.press("enter")
        assert f"· logit of {words[0]} less that of {words[1]} " in explorer.messages[-1]
        await explorer.press("P")
        assert "[logit difference]" in explorer.text


async def test_the_answer_to_a_masked_word_is_read_at_the_mask() -> None:
    async with exploring(WIDE, model=str(REFERENCES / "bert"), text="the [MASK] cat") as explorer:
        place = [token.text for token in explorer.session.encoding.tokens].index("[MASK]")
        before = explorer.session.trace
        screen = await complete(explorer, "A")
        assert screen.search.positions == range(place, place + 1)
        await explorer.press("enter")
        await explorer.until(lambda: f"answer at position {place}, [MASK]" in explorer.messages[-1])
        likely = before["output.probabilities"][place].argmax()
        first = explorer.messages[-1].split(": ", 1)[1]
        assert first.startswith(explorer.session.model.target_label(int(likely)))
