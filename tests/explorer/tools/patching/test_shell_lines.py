"""The line for the shell makes the table that is shown, however its sentence is read and whatever is measured."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, exploring
from reference import REFERENCES

from tui_transformer import Set
from tui_transformer.cli.main import app
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.patching import PatchingScreen
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure

BRACKETS = ModelOptions("story", framing=Framing(bracket=True))
WORDS = "[PAD]\n[UNK]\n[BOS]\n[EOS]\nthe\ncat\nsat\nmat\n"


@dataclass
class Case:
    options: ModelOptions
    text: str | None
    other: str
    more: dict = field(default_factory=dict)
    measure: Measure | None = None


CASES = {
    "brackets": Case(BRACKETS, "the fox", "its fox"),
    "batch": Case(ModelOptions("story"), "the fox", "its fox", {"batch": ("the fox", "the fox found a crow")}),
    "mask": Case(ModelOptions("story"), None, "its fox", {"ids": (5, 6, 7, 8), "mask": (0, 1, 1, 1)}),
    "cut": Case(ModelOptions("copy", cut=True), "a b c d e f g h " * 9, "b b c d e f g h " * 9),
    "pair": Case(ModelOptions(str(REFERENCES / "bert")), "The waves", "The shore", {"pair": "a shore"}),
    "masked word": Case(ModelOptions(str(REFERENCES / "bert")), "the [MASK] cat", "the [MASK] dog"),
    "own answer": Case(ModelOptions("question"), "where is the map ?", "who is the map ?", measure=Measure("loss", ())),
}


def begun(case: Case) -> Session:
    more = dict(case.more)
    return open_session(case.options, case.text, more.pop("ids", None), **more).with_measure(case.measure)


async def table_and_line(session: Session, other: str) -> tuple[dict, str]:
    async with exploring(NARROW, session=session) as explorer:
        await explorer.press("$")
        if isinstance(explorer.app.screen, PatchingScreen):
            await explorer.press("slash")
        await explorer.answer(other)
        screen = await explorer.front(PatchingScreen, lambda screen: screen.table and not screen.table.missing)
        await explorer.press("y")
        return {(each.step, each.column): value for each, value in screen.table.values.items()}, explorer.messages[-1]


def of_shell(line: str, metric: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert line.startswith("copied: ")
    app([*shlex.split(line.removeprefix("copied: "))[1:], "--format", "json"], standalone_mode=False)
    return {(row["step"], row["position"]): row[metric] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("name", CASES)
async def test_the_line_makes_the_same_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    shown, line = await table_and_line(begun(case), case.other)
    assert of_shell(line, "loss" if case.measure else "divergence", capsys) == pytest.approx(shown, abs=1e-6)


async def test_the_line_has_the_file_of_the_vocabulary_and_what_unknown_words_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "words" / "own.txt"
    file.parent.mkdir()
    file.write_text(WORDS)
    options = ModelOptions("encoder", vocab=str(file), unknown="zero", embedding="uniform")
    shown, line = await table_and_line(open_session(options, "the cat zzz mat"), "the mat zzz mat")
    monkeypatch.chdir(tmp_path)
    assert of_shell(line, "divergence", capsys) == pytest.approx(shown, rel=1e-4, abs=1e-12)


async def test_it_is_said_what_the_line_is_without() -> None:
    session = open_session(ModelOptions("story"), "the fox").with_breaks("no-scale")
    session = session.with_edits(Set("embedding.output", np.arange(80) / 80, rows=1))
    _, said = await table_and_line(session, "its fox")
    assert said.startswith("copied, without 1 edit with too many numbers and what is broken: tui-transformer patch ")
