"""What visitors of a served explorer open and write: every place to type is walked with names of files of others."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_transformer import explorer

EXPLORER = Path(explorer.__file__).parent
HERE = Path(__file__).parent

OF_FILES = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir",
    "read_bytes", "read_text", "readlink", "rename", "rglob", "rmdir", "samefile", "stat", "symlink_to", "touch",
    "unlink", "walk", "write_bytes", "write_text",
}  # fmt: skip
"""Methods of paths, but for `open` and `replace`, which others have too."""

MODULES = {"os", "shutil", "tempfile", "glob", "io", "mmap", "subprocess"}
NOT_OF_FILES = {
    "BytesIO", "StringIO", "environ", "cpu_count", "getpid", "read", "killpg", "sysconf", "fspath", "sep", "linesep",
}  # fmt: skip
OF_NUMPY = {"load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromfile", "memmap"}
GATED = {"expanded", "meant", "path_of", "may_open"}
"""Functions that ask the gate about a path which somebody wrote."""

ASKS = {"PromptScreen", "asking", "OpenScreen", "Form"}
OF_WHAT_IS_OPEN = {"action_find", "action_rate", "action_sentence"}
"""Keys of a survey and of a run that are open: they ask for the name of a measure, a number and a sentence."""

CHECKED = {"_ask_notes", "_resumed"}
"""Functions that are given a path once it was let through: of a bookmark, and of the folder of a run."""


def calls(path: Path) -> Iterator[tuple[ast.Call, str]]:
    """The calls in a file, and the name of the function or method that is called."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            yield node, function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_of_files(call: ast.Call, name: str) -> bool:
    """Whether a call looks at a file, opens, makes or removes one, or runs a program, by itself."""
    function, first = call.func, call.args[0] if call.args else None
    if isinstance(function, ast.Name):
        return name == "open"
    module = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and set(first.value) <= set("rwxabt+")
    opens = name == "open" and (mode or any(each.arg in ("mode", "encoding", "newline") for each in call.keywords))
    of_module = (module in MODULES and name not in NOT_OF_FILES) or (module == "np" and name in OF_NUMPY)
    return opens or of_module or (name in OF_FILES and module not in ("ast", "re"))


def test_no_file_is_opened_but_by_the_functions_that_ask_the_gate() -> None:
    found = {
        f"{path.relative_to(EXPLORER).as_posix()}:{call.lineno} {ast.unparse(call)}"
        for path in EXPLORER.rglob("*.py")
        for call, name in calls(path)
        if is_of_files(call, name)
    }
    beside = {each for each in found if not each.startswith("shell/user_files.py:")}
    assert len(found) > len(beside)  # what is looked for is found where it is
    assert not beside


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a visitor was told who gave names of files of others to all that asks."""
    root = tmp_path_factory.mktemp("served").resolve()
    folder, outside = root / "files", root / "outside"
    for each in (folder, outside):
        each.mkdir()
        (each / "secret.txt").write_text("waves crashed shore\n", encoding="utf-8")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    before = (outside / "secret.txt").stat()
    homes = {name: str(root / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")}
    paths = os.pathsep.join(map(str, (EXPLORER.parents[1], HERE.parent)))
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "walk.py"), str(folder), str(outside)],
        cwd=outside,
        env={**os.environ, **homes, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    after = (outside / "secret.txt").stat()
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]
    assert (after.st_mtime_ns, after.st_mode, after.st_nlink) == (before.st_mtime_ns, before.st_mode, before.st_nlink)
    return {**json.loads(done.stdout), "folder": str(folder), "outside": str(outside)}


READ = {
    "another checkpoint", "a dump", "checkpoints", "cuts add", "lens tuned", "open", "probes", "settings", "survey",
    "train", "vocabulary", "edit += {}", "edit = mean({})", "compare-dump", "generate steer",
}  # fmt: skip
WRITTEN = {"bookmark", "export", "record", "export of a chart", "generate export", "poster export", "probes write"}


@pytest.mark.slow
def test_a_visitor_reads_and_writes_nothing_of_others(walked: dict[str, Any]) -> None:
    assert walked["reached"] == []
    assert set(walked["said"]) == READ | WRITTEN


@pytest.mark.slow
def test_a_visitor_is_told_what_was_refused_and_where_files_may_be(walked: dict[str, Any]) -> None:
    for what, told in walked["said"].items():
        for name, said in told.items():
            typed, _, without = name.partition(" without")
            typed = typed.rpartition(" ")[2].removeprefix("mean(").removeprefix("4*").removesuffix(")")
            only = "open no files here, as it is served without --files" if name.endswith("without") else ""
            line = f"{typed}: visitors {only or 'open files below ' + walked['folder'] + ' only'}"
            assert said.endswith(line), (what, said)
            assert not without


@pytest.mark.slow
def test_without_a_folder_nothing_is_opened_and_what_is_written_is_a_download(walked: dict[str, Any]) -> None:
    without = {what for what, told in walked["said"].items() if any(name.endswith("without") for name in told)}
    assert without == READ


@pytest.mark.slow
def test_whether_a_file_of_others_is_there_is_not_learned(walked: dict[str, Any]) -> None:
    for told in walked["said"].values():
        lines = {name: said for name, said in told.items() if "secret" in name and not name.endswith("without")}
        for name, said in lines.items():
            assert told[name.replace("secret", "nothing")] == said.replace("secret", "nothing")


@pytest.mark.slow
def test_every_place_to_type_and_every_path_that_is_typed_is_walked(walked: dict[str, Any]) -> None:
    """Found by structure: one that is added later is walked, or fails here."""
    passed = {(file, line) for file, line in walked["places"]}
    missing = []
    for path in EXPLORER.rglob("*.py"):
        file = path.relative_to(EXPLORER).as_posix()
        for function, lines, name in within_functions(path):
            of_paths = name in ASKS | GATED and function not in OF_WHAT_IS_OPEN | CHECKED
            if of_paths and not any((file, line) in passed for line in lines):
                missing.append(f"{file} {function}: {name}")
    assert not missing


def within_functions(path: Path) -> Iterator[tuple[str, range, str]]:
    """The names of what is called in a file, with the outermost function around it and the lines of that."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for top in [each for node in tree.body for each in (node.body if isinstance(node, ast.ClassDef) else [node])]:
        for node in ast.walk(top):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                yield getattr(top, "name", ""), range(top.lineno, (top.end_lineno or top.lineno) + 1), name
