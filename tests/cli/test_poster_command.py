"""`poster`: the way back from one cell, as text, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run


def test_the_cell_that_is_named_is_traced_back(run: Run) -> None:
    ended = run("poster", "weights", "--model", "question", "--cell", "2,0,8", "--levels", "3")
    first, *_ = ended.out.splitlines()
    assert first.startswith("0.98859 = e^(6.943 − 6.943) ÷ 1.0115   encoder.0.self_attention.weights")
    assert "scores" in ended.out


def test_without_a_cell_it_is_the_largest(run: Run) -> None:
    ended = run("poster", "output.logits", "--model", "question", "--levels", "1")
    assert ended.out.startswith("9.0879 = 8.9712 + 0.11672   output.logits")


@pytest.mark.parametrize(("name", "begins"), [("p.svg", b"<svg"), ("p.png", b"\x89PNG"), ("p.txt", b"0.98859 = ")])
def test_the_ending_chooses_the_form(run: Run, tmp_path: Path, name: str, begins: bytes) -> None:
    if name.endswith("png"):
        pytest.importorskip("resvg_py")
    ended = run("poster", "weights", "--model", "question", "--cell", "2,0,8", "--out", name)
    assert ended.code == 0, ended.err
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("weights", "--cell", "2,0"), "write HEAD,ROW,COLUMN"),
        (("weights", "--cell", "a"), "is not a cell of"),
        (("weights", "--cell", "2,0,99"), "its last is"),
        (("weights", "--out", "p.pdf"), "a poster ends in .svg, .png, .txt"),
        (("nothing",), "nothing"),
    ],
)
def test_what_cannot_be_drawn_is_said(run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run("poster", *arguments, "--model", "question")
    assert ended.code in (1, 2)
    assert says in ended.err
