"""Texts of files and standard input: a line each, or objects of JSONL; streamed, numbered, and refused by name."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tui_transformer.errors import InputError
from tui_transformer.survey.work import batches, check_files, read_items


def texts(*files: Path | str) -> list[tuple[int, int, str]]:
    return [(item.number, item.source.line, item.source.text) for item in read_items([str(file) for file in files])]


def test_a_line_is_a_text_and_blank_lines_are_none(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("one\r\n\n  \ntwo  words\nthree\\u2028 é".encode())
    (tmp_path / "b.txt").write_text("four", encoding="utf-8")
    lines = texts(tmp_path / "a.txt", tmp_path / "b.txt")
    assert lines == [(0, 1, "one"), (1, 4, "two  words"), (2, 5, "three\\u2028 é"), (3, 1, "four")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_jsonl_gives_the_text_of_every_object(tmp_path: Path, name: str):
    (tmp_path / name).write_text('{"id": 1, "text": "one\\ntwo"}\n\n{"text": ""}\n{"text": "three"}', encoding="utf-8")
    assert texts(tmp_path / name) == [(0, 1, "one\ntwo"), (1, 4, "three")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": 1}', "no object with a text"),
        ("[1]", "not a JSON object"),
        ('{"text": "a"', "not JSON"),
        ("x", "not JSON"),
    ],
)
def test_a_line_of_jsonl_without_a_text_is_named(tmp_path: Path, line: str, said: str):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "one"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match=f"a.jsonl line 2: {said}"):
        texts(tmp_path / "a.jsonl")


def test_a_long_object_is_read_whole(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"text": "' + "long " * 200_000 + '"}', encoding="utf-8")
    assert [len(text) for *_, text in texts(tmp_path / "a.jsonl")] == [1_000_000]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b'{"text": "one"}\n{"text": "two"}\n', ["one", "two"]),
        (b'one\n{"text": "two"}\nthree\n', ["one", '{"text": "two"}', "three"]),
        (b'\n{"text": "two"}\n', ['{"text": "two"}']),
    ],
)
def test_standard_input_is_lines_or_jsonl(monkeypatch: pytest.MonkeyPatch, data: bytes, expected: list[str]):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert [text for *_, text in texts("-")] == expected


def test_files_are_checked_before_anything_is_read(tmp_path: Path):
    for files, said in (
        ([str(tmp_path)], "is a folder"),
        (["missing.txt"], "no such file"),
        (["-", "-"], "given twice"),
    ):
        with pytest.raises(InputError, match=said):
            check_files(files)


def test_no_more_is_read_than_is_asked_for(tmp_path: Path):
    (tmp_path / "a.txt").write_text("a line of text\n" * 100_000, encoding="utf-8")
    read = []
    iterator = batches(read_items([str(tmp_path / "a.txt")], read.append), 16)
    assert len(next(iterator)) == 16
    assert sum(read) < 1_000_000
