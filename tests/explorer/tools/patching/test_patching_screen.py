"""Tables of patches: the numbers of the analysis, ended, gone on with, made in the main screen and in the shell."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer import Scale, Set
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.analysis.paths import paths
from tui_transformer.cli.main import app
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.patch_tables import PathTable
from tui_transformer.explorer.tools.patching import PatchingScreen
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure


async def opened(explorer: Explorer) -> PatchingScreen:
    await explorer.press("$")
    await explorer.prompt("slash", "The fox found a stone")
    return await complete(explorer)


async def complete(explorer: Explorer) -> PatchingScreen:
    return await explorer.front(PatchingScreen, lambda screen: screen.table is not None and not screen.table.missing)


def sentences(explorer: Explorer, screen: PatchingScreen):
    assert screen.table is not None
    return explorer.session.trace, screen.table.other.trace


async def paths_of(explorer: Explorer, screen: PatchingScreen) -> PathTable:
    """Go on to the table of paths to the logits."""
    while not isinstance(screen.table, PathTable):
        await explorer.press("f")
        await complete(explorer)
    return screen.table


async def through_the_paths(explorer: Explorer) -> None:
    """Go on to the tables of paths, and through all of them."""
    screen = await complete(explorer)
    await paths_of(explorer, screen)
    for _ in screen.receivers:
        await explorer.press("}", "right", "down")
        await complete(explorer)
    assert isinstance(screen.table, PathTable)


async def test_every_kind_has_the_numbers_of_the_analysis_and_is_measured_by_what_is_chosen() -> None:
    async with exploring(WIDE, model="story", text="The fox found a crow") as explorer:
        explorer.parts.port.change(explorer.session.with_measure(Measure("difference", (40, 41))))
        screen = await opened(explorer)
        (trace, other), metric = sentences(explorer, screen), Metric("difference", (40, 41))
        for kind in ("position", "head", "layer"):
            found = sweep(trace, other, table_of(trace.program, kind), metric, screen.table.positions)
            expected = {each.place: each.value for each in found}
            assert screen.table.kind == kind
            assert screen.table.values == pytest.approx(expected)
            assert f"{len(expected)} of {len(expected)} places" in explorer.text
            await explorer.press("f")
            await complete(explorer)
        own, others = (metric.measure(each, trace, screen.table.positions) for each in (trace, other))
        assert f"{own:.4g} as it is, {others:.4g} of the other sentence" in explorer.text


async def test_the_other_sentence_has_the_edits_of_this_one() -> None:
    async with exploring(WIDE, model="story", text="The fox found a crow") as explorer:
        edits = (
            Scale("decoder.0.self_attention.context", 0.0, heads=1, rows=2),
            Scale("1.feed_forward.hidden.weight", 0.5),
        )
        explorer.parts.port.change(explorer.session.with_edits(*edits))
        screen = await opened(explorer)
        trace, other = sentences(explorer, screen)
        plain = explorer.session.unedited.with_text("The fox found a stone").trace
        assert np.array_equal(other["output.logits"], plain.edited(edits)["output.logits"])
        values = sweep(trace, other, table_of(trace.program, "position"), Metric("divergence"), screen.table.positions)
        assert screen.table.values == pytest.approx({each.place: each.value for each in values})


async def test_a_cell_says_how_much_of_the_way_it_brings_and_is_patched_by_enter() -> None:
    async with exploring(NARROW, model="story", text="The fox found a crow") as explorer:
        screen = await opened(explorer)
        trace, other = sentences(explorer, screen)
        await explorer.press("end", "G")  # the last position behind the last layer is all that is read
        assert "100.0 % of the way to the other sentence" in explorer.text
        await explorer.press("enter")
        await explorer.until(lambda: explorer.session.edits)
        await explorer.settled()
        np.testing.assert_allclose(explorer.session.trace["output.logits"][-1], other["output.logits"][-1], atol=1e-4)
        assert explorer.app.screen is explorer.main
        await explorer.press("u")
        assert explorer.session.trace is trace


async def test_esc_ends_the_computation_and_n_goes_on() -> None:
    others = " The fox found a crow." * 5
    async with exploring(WIDE, model="story", text=f"The fox found a crow.{others}") as explorer:
        await explorer.keys("$", "slash")
        await explorer.write(f"The fox found a stone.{others}")
        await explorer.keys("enter")
        await explorer.until(lambda: isinstance(explorer.app.screen, PatchingScreen) and explorer.app.screen.table)
        screen = explorer.app.screen
        await explorer.until(
            lambda: screen.table.values and screen.table.other.text.startswith("The fox found a stone")
        )
        await explorer.press("escape")
        assert screen.table.missing
        assert "ended" in explorer.text
        await explorer.press("N")
        await complete(explorer)


async def test_another_length_is_refused_and_every_size_is_drawn() -> None:
    async with exploring(SMALL, model="story", text="The fox found a crow") as explorer:
        await explorer.press("$")
        await explorer.prompt("slash", "The fox")
        assert "a table needs as many" in " ".join(explorer.text.split())
        await explorer.answer("The fox found a stone")
        await complete(explorer)
        async for _ in explorer.sizes(WIDE, (5, 3), (1, 1), NARROW):
            await explorer.press("right", "down", "plus")
        assert isinstance(explorer.app.screen.query_one(HeatMap), HeatMap)
        await explorer.resize(*SMALL)
        await through_the_paths(explorer)
        await explorer.leave()


@pytest.mark.parametrize(
    "options", [{"model": "copy"}, {"model": "encoder-decoder"}, {"model": "decoder", "ids": [4, 5]}]
)
async def test_it_opens_on_a_counterpart_with_as_many_tokens(options) -> None:
    async with exploring(MEDIUM, **options) as explorer:
        await explorer.press("$")
        screen = await complete(explorer)
        other = screen.table.other
        assert other.text or other.ids
        assert len(other.encoding.tokens) == len(explorer.session.encoding.tokens)
        assert other.encoding.ids != explorer.session.encoding.ids
        assert "from the suggested “" in explorer.text
        if options["model"] == "encoder-decoder":
            await through_the_paths(explorer)
        if options["model"] == "copy":
            assert "from the suggested “q f a s m e q f a s m”" in explorer.text
            await explorer.press("slash")
            assert explorer.focused_input.value == "q f a s m e q f a s m"
            await explorer.answer("q f a s m n q f a s m")
            assert "suggested" not in explorer.text
            # small effects have no full colour: of itself nothing changes
            await explorer.prompt("slash", explorer.session.text)
            await complete(explorer)
            scale = screen.query_one(HeatMap)._scale
            assert scale.high - scale.low >= 1


async def test_paths_have_the_numbers_of_the_library_patched_and_estimated() -> None:
    async with exploring(WIDE, model="story", text="The fox found a crow") as explorer:
        explorer.parts.port.change(explorer.session.with_measure(Measure("difference", (40, 41))))
        table = await paths_of(explorer, await opened(explorer))
        for kind in ("logits", "key"):
            assert table.kind == kind
            trace, other, metric = explorer.session.trace, table.other.trace, Metric("difference", (40, 41))
            for by, values in (("patching", table.values), ("gradient", table.estimates)):
                expected = paths(trace, other, receivers=kind, metric=metric, positions=table.positions, by=by)
                np.testing.assert_allclose(values, expected.changes, atol=1e-5)
                assert table.ends == pytest.approx((expected.own, expected.other))
            assert np.isnan(table.values).sum() == (~table.there).sum()
            assert "patched alone" in explorer.text
            assert "estimated: gradient × difference" in explorer.text
            if kind == "logits":
                await explorer.press("down", "down")
                change, estimate = table.values[2, 0], table.estimates[2, 0]
                assert f"head:decoder.0.self_attention:1 → logits  {change:+.4f}".replace("-", "−") in explorer.text
                assert f"{estimate:+.4f} estimated".replace("-", "−") in explorer.text
                await explorer.keys("}", "}")
                table = (await complete(explorer)).table
        # the step of the sender
        await explorer.press("enter")
        assert explorer.app.screen is explorer.main
        assert (explorer.stop, explorer.position.place.head) == ("decoder.0.self_attention.context", 1)


async def test_the_divergence_has_no_estimate_and_the_line_for_the_shell_makes_the_table(capsys) -> None:
    async with exploring(NARROW, model="story", text="The fox found a crow") as explorer:
        table = await paths_of(explorer, await opened(explorer))
        assert table.estimates is None
        assert "estimated" not in explorer.text
        assert "KL has no estimate: its gradient is 0 here, # chooses" in " ".join(explorer.text.split())
        await explorer.press("y")
        line = explorer.messages[-1]
    changes = [row["change"] for row in of_shell(line, capsys)]
    np.testing.assert_allclose(changes, table.values[table.there], atol=1e-5)


async def test_the_key_of_another_metric_is_that_of_this_screen_where_the_main_one_has_menus() -> None:
    async with exploring(WIDE, model="story", text="The fox found a crow", preferences=Preferences()) as explorer:
        await explorer.press("a", "P")
        await paths_of(explorer, await complete(explorer))
        assert "its gradient is 0 here, w chooses another metric" in " ".join(explorer.text.split())


STORY, BERT = ModelOptions("story"), ModelOptions(str(REFERENCES / "bert"))
CASES = {
    "brackets": (lambda: open_session(replace(STORY, framing=Framing(bracket=True)), "the fox"), "its fox"),
    "batch": (lambda: open_session(STORY, "the fox", batch=("the fox", "the fox found a crow")), "its fox"),
    "mask": (lambda: open_session(STORY, ids=(5, 6, 7, 8), mask=(0, 1, 1, 1)), "its fox"),
    "cut": (lambda: open_session(ModelOptions("copy", cut=True), "a b c d e f g h " * 9), "b b c d e f g h " * 9),
    "pair": (lambda: open_session(BERT, "The waves", pair="a shore"), "The shore"),
    "masked word": (lambda: open_session(BERT, "the [MASK] cat"), "the [MASK] dog"),
    "own answer": (
        lambda: open_session(ModelOptions("question"), "where is the map ?").with_measure(Measure("loss", ())),
        "who is the map ?",
    ),
}
"""Sessions, and the other sentence."""


async def table_and_line(session: Session, other: str) -> tuple[dict, str]:
    async with exploring(NARROW, session=session) as explorer:
        await explorer.press("$")
        if isinstance(explorer.app.screen, PatchingScreen):
            await explorer.press("slash")
        await explorer.answer(other)
        screen = await complete(explorer)
        await explorer.press("y")
        return {(each.step, each.column): value for each, value in screen.table.values.items()}, explorer.messages[-1]


def of_shell(line: str, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    assert line.startswith("copied: ")
    app([*shlex.split(line.removeprefix("copied: "))[1:], "--format", "json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out)


def places(rows: list[dict], metric: str) -> dict:
    return {(row["step"], row["position"]): row[metric] for row in rows}


@pytest.mark.parametrize("name", CASES)
async def test_the_line_makes_the_same_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun, other = CASES[name]
    shown, line = await table_and_line(begun(), other)
    metric = "loss" if name == "own answer" else "divergence"
    assert places(of_shell(line, capsys), metric) == pytest.approx(shown, abs=1e-6)


async def test_the_line_has_the_file_of_the_vocabulary_and_what_unknown_words_are(tmp_path, monkeypatch, capsys):
    file = tmp_path / "words" / "own.txt"
    file.parent.mkdir()
    file.write_text("[PAD]\n[UNK]\n[BOS]\n[EOS]\nthe\ncat\nsat\nmat\n")
    options = ModelOptions("encoder", vocab=str(file), unknown="zero", embedding="uniform")
    shown, line = await table_and_line(open_session(options, "the cat zzz mat"), "the mat zzz mat")
    monkeypatch.chdir(tmp_path)
    assert places(of_shell(line, capsys), "divergence") == pytest.approx(shown, rel=1e-4, abs=1e-12)


async def test_it_is_said_what_the_line_is_without() -> None:
    session = open_session(ModelOptions("story"), "the fox").with_breaks("no-scale")
    session = session.with_edits(Set("embedding.output", np.arange(80) / 80, rows=1))
    _, said = await table_and_line(session, "its fox")
    assert said.startswith("copied, without 1 edit with too many numbers and what is broken: tui-transformer patch ")
