"""A visitor's session as the server runs it: what is written is a download, and it ends whatever it waits for."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")
if sys.platform == "win32":
    pytest.skip("pipes are read otherwise", allow_module_level=True)

from serving import free_port
from textual._binary_encode import load

from tui_transformer.cli.visit import environment as of_visit


class Visitor:
    """The process of a session, what it wrote, and the files that it hands to the browser."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.shown = b""

    def packet(self) -> tuple[bytes, bytes]:
        """The next thing that it says: a kind and its data."""
        assert self._process.stdout is not None
        kind = self._process.stdout.read(1)
        size = int.from_bytes(self._process.stdout.read(4), "big")
        data = self._process.stdout.read(size)
        assert kind, "the session has ended"
        self.shown += data if kind == b"D" else b""
        return kind, data

    def send(self, kind: bytes, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(kind + len(data).to_bytes(4, "big") + data)
        self._process.stdin.flush()

    def until(self, text: bytes) -> None:
        """Read on until something is shown."""
        self.shown = b""
        while text not in self.shown:
            self.packet()

    def download(self) -> tuple[str, bytes]:
        """The name and the data of the file that is handed over next."""
        said: dict[str, Any] = {}
        while said.get("type") != "deliver_file_start":
            kind, data = self.packet()
            said = json.loads(data) if kind == b"M" else said
        whole, part = b"", b"begun"
        while part:
            asked = {"type": "deliver_chunk_request", "key": said["key"], "size": 1 << 16}
            self.send(b"M", json.dumps(asked).encode())
            kind = b""
            while kind != b"P":
                kind, data = self.packet()
            _, _, part = load(data)
            whole += part
        return Path(said["path"]).name, whole


@contextlib.contextmanager
def visiting(environment: dict[str, str], own: Path, files: Path | None) -> Iterator[Visitor]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tui_transformer", "--model", "question"],
        env={**environment, **of_visit(own, files), "COLUMNS": "100", "ROWS": "30"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        while process.stdout.readline() != b"__GANGLION__\n":
            assert process.poll() is None
        visitor = Visitor(process)
        visitor.until(b"sailor")
        yield visitor
        visitor.send(b"M", b'{"type": "quit"}')
        with contextlib.suppress(AssertionError):
            while True:
                visitor.packet()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def bookmark(visitor: Visitor, name: bytes) -> None:
    visitor.send(b"D", b"mb")
    visitor.until(b"Bookmark")
    visitor.send(b"D", name + b"\r")
    visitor.until(b"gives")  # "Notes for who gives the lecture": cells that stay as they are are not written again
    visitor.send(b"D", b"\r")


def test_bookmarks_of_visitors_without_a_folder_are_downloads(environment, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    before = {each for each in tmp_path.rglob("*") if own not in each.parents}
    with visiting(environment, own, None) as visitor:
        for count in (1, 2):  # the second is appended to what was handed over first
            bookmark(visitor, b"/etc/mine.toml")
            name, data = visitor.download()
            assert name == "mine.toml"
            assert len(tomllib.loads(data.decode())) == count
        visitor.send(b"D", b"mb")
        visitor.until(b"Bookmark")
        visitor.send(b"D", b"/etc/mine.csv\r")
        visitor.until(b"has to end in")
        assert str(own).encode() not in visitor.shown
        assert b"mine.csv: the name of a lecture" in visitor.shown
    assert {each for each in tmp_path.rglob("*") if own not in each.parents} == before


def test_bookmarks_of_visitors_with_a_folder_are_written_there(environment, tmp_path):
    own, files = tmp_path / "own", tmp_path / "files"
    own.mkdir()
    files.mkdir()
    with visiting(environment, own, files) as visitor:
        bookmark(visitor, b"mine.toml")
        visitor.until(b"stop 1 of mine.toml")
    assert len(tomllib.loads((files / "mine.toml").read_text(encoding="utf-8"))) == 1
    assert [each.name for each in files.iterdir()] == ["mine.toml"]


def test_the_address_answers_once_it_is_printed(monkeypatch):
    pytest.importorskip("textual_serve")
    from tui_transformer.cli import server as module

    port = free_port()
    server = module.BoundedServer("true", "127.0.0.1", port, "http://127.0.0.1", 1)

    def printed(line: str, **_: object) -> None:
        assert line == "http://127.0.0.1/ shows the explorer; ctrl+c ends it"
        socket.create_connection(("127.0.0.1", port)).close()
        server.request_exit()

    monkeypatch.setattr(module, "print", printed, raising=False)
    server.serve()
