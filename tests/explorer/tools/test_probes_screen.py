"""Probes on a screen: the scores of the library by layer and position, the words of a direction, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer import Model, probe, record
from tui_transformer.analysis.labelled import read_labelled, stream
from tui_transformer.explorer.tools.probes import Fitted, ProbesScreen
from tui_transformer.session.edit_format import changes

ENDS = ("sat", "went home", "sang a song", "found a stone")
TEXTS = [f"{first} {who} {did}" for who in ("fox", "crow") for first in ("The", "A", "One") for did in ENDS]
LABELS = ["fox"] * 12 + ["crow"] * 12


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "who.tsv"
    path.write_text("".join(map("{}\t{}\n".format, LABELS, TEXTS)), encoding="utf-8")
    return path


async def opened(explorer: Explorer, path: Path) -> ProbesScreen:
    await explorer.open("probes")
    await explorer.answer(str(path))
    return await complete(explorer)


async def complete(explorer: Explorer) -> ProbesScreen:
    return await explorer.front(ProbesScreen, lambda screen: screen.probes and screen.probes.missing is None)


async def test_every_layer_and_position_scores_as_in_the_library(file: Path, tmp_path: Path) -> None:
    async with exploring(WIDE, model="story", text="The fox") as explorer:
        screen = await opened(explorer, file)
        model = Model.load("story")
        steps = tuple(stream(model.program(2)))
        data = record(model, TEXTS, steps, tmp_path / "rows")
        for kind in ("logistic", "difference"):
            assert screen.probes.kind == kind
            for column, position in enumerate(screen.probes.positions):
                for row, each in enumerate(probe(data, LABELS, kind=kind, position=position)):
                    found = screen.probes.found[row, column]
                    assert isinstance(found, Fitted)
                    assert found.probe.step == each.step == steps[row]
                    assert (found.probe.score, found.probe.held) == (each.score, each.held)
                    np.testing.assert_allclose(found.probe.direction.vector, each.direction.vector, atol=1e-6)
                    words = each.direction.words(model.trace("The fox"), 5)
                    assert [word.token for word in found.words[0]] == [word.token for word in words]
            await explorer.press("f")
            await complete(explorer)


async def test_what_is_no_file_is_refused_and_a_cell_says_its_score_and_words_and_is_written(file, tmp_path) -> None:
    (tmp_path / "a.tsv").write_text("one", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("no tab\nhere", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    (tmp_path / "d.csv").write_text("text,label\n", encoding="utf-8")
    async with exploring(MEDIUM, model="story", text="The fox") as explorer:
        await explorer.open("probes")
        for name in ("a.tsv", "b.tsv", "c.jsonl", "d.csv", "none.tsv"):
            await explorer.answer(str(tmp_path / name))
            assert explorer.app.screen.query(".problem.-said"), name
        await explorer.leave("escape", "escape")
        # what a cell says
        screen = await opened(explorer, file)
        await explorer.press("end", "G")
        column = len(screen.probes.positions) - 1
        made = screen.probes.found[3, column].probe
        text = " ".join(explorer.text.split())
        assert f"layer 2 · last {made.score:.1%}".replace("%", " %") in text
        assert f"of {made.held} held out, {made.chance:.1%}".replace("%", " %") in text
        assert "toward fox ↑" in text
        # its direction
        await explorer.prompt("x", str(tmp_path / "probe.npy"))
        np.testing.assert_array_equal(np.load(tmp_path / "probe.npy"), made.direction.vector)
        await explorer.press("enter")
        assert explorer.app.screen is explorer.main
        assert explorer.stop == "decoder.2.feed_forward.residual"


@pytest.mark.parametrize(("size", "model"), [(SMALL, "story"), (NARROW, "encoder"), (NARROW, "encoder-decoder")])
async def test_it_is_drawn_at_every_size_of_every_model_that_reads(size: tuple[int, int], model: str, tmp_path) -> None:
    path = tmp_path / "n.csv"
    words = ("the", "waves", "shore")
    lines = [f"{a} {b},{i}.5" for i, (a, b) in enumerate((a, b) for a in words for b in words)]
    path.write_text("\n".join(["text,label", *lines, "the,3"]), encoding="utf-8")
    async with exploring(size, model=model) as explorer:
        screen = await opened(explorer, path)
        assert screen.kind == "ridge"
        assert screen.probes.numeric
        for _ in range(3):
            await explorer.press("right", "down", "f")
            await complete(explorer)


def test_labels_stand_in_front_or_where_a_line_of_names_has_them(tmp_path: Path) -> None:
    wanted = (("one", "two, too"), (1, 2.5))
    for name, text in {
        "a.tsv": "1\tone\n\n2.5\ttwo, too\n",
        "b.csv": 'Sentence,id,label\none,7,1\n"two, too",8,2.5\n',
        "c.jsonl": '{"label": 1, "text": "one"}\n{"class": 2.5, "prompt": "two, too"}\n',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        read = read_labelled(tmp_path / name)
        assert (read.texts, read.labels) == wanted


async def test_it_reads_the_model_without_edits_and_breaks_and_says_so(file: Path) -> None:
    async with exploring(WIDE, model="story", text="The fox") as explorer:
        screen = await opened(explorer, file)
        plain, text = screen.probes, explorer.text
        assert "2 classes" in text
        assert "without" not in text
        await explorer.press("escape")
        session = explorer.session.with_breaks("no-feed-forward")
        await explorer.change(session.with_edits(*changes(session.model, session.base.program, ["1.output *= 0.5"])))
        screen = await opened(explorer, file)
        assert "2 classes · the model without the edits and the breaks" in explorer.text
        for place, made in plain.found.items():
            again = screen.probes.found[place]
            assert (again.probe.score, again.words) == (made.probe.score, made.words)
