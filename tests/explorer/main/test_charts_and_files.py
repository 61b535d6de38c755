from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import resvg_py
from driving import NARROW, SMALL, WEIGHTS, WIDE, exploring

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.errors import InputError
from tui_transformer.explorer.widgets.chart import Chart
from tui_transformer.session.edit_format import changes
from tui_transformer.session.view_state import BEFORE, Measure
from tui_transformer.views.chart_data import charts_for


def chart_text(explorer) -> str:
    pane = explorer.main.query_one("#chart", Chart)
    return "\n".join(pane.render_line(y).text for y in range(pane.size.height))


async def test_c_goes_through_the_charts_of_every_step_and_around_and_one_fills_a_small_screen():
    async with exploring(WIDE) as explorer:
        for stop in explorer.session.stops[1:-1]:
            if explorer.stop != stop:
                await explorer.press("space")
            assert explorer.stop == stop
            if stop == "tokens":
                assert "no sizes" in chart_text(explorer)
                continue
            seen = [chart_text(explorer)]
            while len(seen) < 9:
                await explorer.press("c")
                if chart_text(explorer) == seen[0]:
                    break
                seen.append(chart_text(explorer))
            assert len(set(seen)) == len(seen) >= 2, stop
            assert len(seen) < 9, stop
            assert all(text.strip() for text in seen)
        async for _ in explorer.sizes(NARROW, SMALL):
            await explorer.go("embedding.positions")
            await explorer.press("6")
            assert explorer.main.query_one("#chart").has_focus
            assert len(chart_text(explorer)) > 100
            await explorer.press("c", "space", "c")
            assert chart_text(explorer).strip()


async def test_a_chart_that_is_of_something_else_than_what_is_drawn_says_so():
    async with exploring(WIDE, model="question") as explorer:
        session = explorer.session
        wanted = ["embedding.positions[0,0] = 3", "0.self_attention.scores *= 3"]
        edited = session.with_edits(*changes(session.model, session.base.program, wanted))
        await explorer.change(edited.with_overlay(BEFORE))
        for stop, whole in {WEIGHTS: "Entropy of every head", "embedding.positions": "where @0: 3"}.items():
            await explorer.go(stop)
            for _ in range(4):
                await explorer.press("z")
                seen = []
                for _ in charts_for(edited.trace.program, stop):
                    await explorer.press("c")
                    seen.append(explorer.main.query_one("#chart", Chart).chart)
                titles = " ".join(each.title for each in seen)
                assert ("this · " in titles) is (explorer.drawn in ("overlay", "difference"))
                assert whole in " ".join([titles, *(one.label for each in seen for one in getattr(each, "series", ()))])


async def test_m_gives_one_scale_for_all_layers_and_back():
    async with exploring(NARROW, sizes={"layers": 3}) as explorer:
        reach: dict[bool, list[float]] = {False: [], True: []}
        for layer in range(3):
            await explorer.go(f"encoder.{layer}.self_attention.scores")
            for _ in range(2):
                reach[explorer.view.shared_scale].append(explorer.scene.scale.high)
                await explorer.press("m")
        assert set(reach[True]) == {max(reach[False])}
        assert len(set(reach[False])) == 3


READ = {
    ".csv": lambda path: np.genfromtxt(path, delimiter=",")[1:, 1:],
    ".json": lambda path: json.loads(path.read_text())["values"],
    ".npz": lambda path: next(iter(np.load(path).values())),
}
"""How the numbers in a file are read."""


async def test_what_is_copied_or_exported_reads_back_equal_and_pictures_and_text_are_written(here):
    async with exploring(NARROW, at=WEIGHTS) as explorer:
        wanted = explorer.session.trace[WEIGHTS][1]
        # the cell and the row
        await explorer.press("]", "down", "right", "right", "y")
        assert np.float32(explorer.app.clipboard) == wanted[1, 2]
        await explorer.press("Y")
        row = np.array([float(cell) for cell in explorer.app.clipboard.split("\t")], dtype=np.float32)
        np.testing.assert_array_equal(row, wanted[1])
        # files
        for suffix, read in READ.items():
            await explorer.press("x")
            path = here / f"{Path(explorer.focused_input.value).stem}{suffix}"
            await explorer.answer(path.name)
            assert explorer.app.screen is explorer.main
            assert "written" in explorer.messages[-1]
            values = read(path)
            np.testing.assert_array_equal(np.asarray(values, dtype=wanted.dtype).reshape(wanted.shape), wanted)
        for name in ("picture.svg", "table.txt"):
            await explorer.prompt("x", name)
            assert "shore" in (here / name).read_text()
    picture = resvg_py.svg_to_bytes(svg_path=str(here / "picture.svg"))
    assert bytes(picture).startswith(b"\x89PNG")


async def test_words_are_not_exported_and_a_file_that_cannot_be_written_keeps_the_dialog(here):
    async with exploring(NARROW) as explorer:
        await explorer.press("x", "y", "Y", "w", "c", "m")
        assert explorer.app.screen is explorer.main
        assert any("go to a step" in message for message in explorer.messages)
        await explorer.go("embedding.output")
        await explorer.press("x")
        for name in ("", "weights", "weights.xls", "no/such/folder/w.csv", ".", "/proc/w.csv", "~nobody-here/w.csv"):
            await explorer.answer(name)
            assert explorer.app.screen is not explorer.main
            assert explorer.app.screen.query_one("#problem").visual.plain.strip()
        await explorer.leave()
        assert list(here.rglob("*.*")) == []


async def test_the_chart_is_exported_where_it_has_the_keys(here):
    async with exploring(WIDE, at="embedding.positions") as explorer:
        await explorer.press("6", "c")
        for name in ("waves.svg", "waves.txt"):
            await explorer.prompt("x", "waves.png")
            assert "has to end in .svg, .txt" in explorer.text
            await explorer.answer(name)
            written = (here / name).read_text()
            assert "Positional encoding" in written
            assert "sin 4" in written
        assert {path.name for path in here.iterdir()} == {"waves.svg", "waves.txt"}


async def test_a_gradient_of_a_metric_is_not_exported_as_one_of_the_loss(here):
    async with exploring(WIDE, model="question") as explorer:
        port = explorer.parts.port
        port.change(explorer.session.with_measure(Measure("logit", (explorer.session.encoding.ids[0],))))
        await explorer.press("b")
        await explorer.go(WEIGHTS, 1, 2, 3)
        await explorer.press("z")
        await explorer.prompt("x", "gradient.txt")
        title = Path("gradient.txt").read_text("utf-8").partition("\n")[0]
        of = explorer.session.gradients.start.description
        assert title.startswith(f"∂({of})/∂{WEIGHTS} · ")


@pytest.mark.parametrize(("key", "called"), [("b", "gradient/"), ("=", "difference/")])
async def test_a_gradient_or_difference_has_a_name_in_files_that_no_step_has(here, key, called):
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        session = explorer.session
        wanted = changes(session.model, session.base.program, ["0.self_attention.scores *= 3"])
        await explorer.change(session.with_edits(*wanted).with_overlay(BEFORE))
        if key == "b":
            await explorer.press("b")
            await explorer.go(WEIGHTS)
        while explorer.drawn not in ("overlay" if key == "b" else "difference",):
            await explorer.press("z")
        for suffix in ("npz", "json", "csv"):
            await explorer.prompt("x", f"drawn.{suffix}")
        with np.load("drawn.npz") as file:
            assert file.files == [called + WEIGHTS]
        written = json.loads(Path("drawn.json").read_text("utf-8"))
        assert written["name"] == called + WEIGHTS
        assert written["formula"] in (explorer.scene.working.formula, "this less before the edits")
        model, text = explorer.session.model, explorer.session.text
        with pytest.raises(InputError, match="no name in it is a step"):
            diagnose(open_dump(Path("drawn.npz")), model, Input(np.array([model.encode(text).ids])))
