"""ARCHITECTURE.md is true, as far as that can be looked up, and the explorer keeps the form that it describes."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui_transformer
from tui_transformer import explorer

ROOT = Path(__file__).parent.parent
PACKAGE = Path(tui_transformer.__file__).parent
EXPLORER = PACKAGE / "explorer"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

MOST_METHODS = 45
MOST_LOOSE = 8


def paths() -> list[str]:
    """Everything in the document that is written as a file or folder."""
    written = re.findall(r"`([\w./-]+)`", TEXT)
    return sorted({path for path in written if path.endswith((".py", ".tcss", "/")) or "/" in path})


HOMES = (ROOT, PACKAGE, EXPLORER, *(EXPLORER / part for part in ("main", "state", "shell", "tools")))
"""Where a path may begin: the project, the package, and what the rows on the explorer are about."""
ROWS = tuple(PACKAGE / row for row in re.findall(r"^\| `(\w+)/` \|", TEXT, re.MULTILINE))
"""The folders that the other rows are about."""


@pytest.mark.parametrize("path", [path for path in paths() if "NAME" not in path])
def test_a_path_that_the_document_names_is_there(path: str) -> None:
    assert any((home / path).exists() for home in (*HOMES, *ROWS)), path


def test_every_folder_of_the_package_has_a_row() -> None:
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    assert folders <= set(re.findall(r"^\| `(\w+)/` \|", TEXT, re.MULTILINE))


def test_few_modules_of_the_explorer_lie_loose() -> None:
    assert len(list(EXPLORER.glob("*.py"))) <= MOST_LOOSE


def test_nothing_in_the_explorer_is_imported_by_a_name_in_a_string() -> None:
    importing = [path for path in EXPLORER.rglob("*.py") if "import_module" in path.read_text(encoding="utf-8")]
    assert not importing


def test_every_class_of_the_explorer_is_small() -> None:
    large = {f"{each.__module__}.{each.__name__}": size for each in classes() if (size := methods(each)) > MOST_METHODS}
    assert not large


def test_a_session_is_never_written_to() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (EXPLORER / "state").glob("*.py"))
    assert "cached_property" not in source
    assert "vars(" not in source


def classes() -> Iterator[type]:
    """Every class of the explorer."""
    for info in pkgutil.walk_packages(explorer.__path__, f"{explorer.__name__}."):
        module = importlib.import_module(info.name)
        for each in vars(module).values():
            if inspect.isclass(each) and each.__module__ == module.__name__:
                yield each


def test_training_alone_has_a_thread_besides_the_worker() -> None:
    """Work is asked for; the one exception is said in ARCHITECTURE.md. asyncio's own thread is given one name."""
    made = re.compile(r"thread=True|\bThread\(|ThreadPoolExecutor\(|to_thread|run_in_executor")
    threads = {
        path.relative_to(EXPLORER).as_posix() for path in EXPLORER.rglob("*.py") if made.search(path.read_text("utf-8"))
    }
    assert threads == {"app.py", "shell/worker.py", "tools/train/driver.py"}


def test_nothing_that_belongs_to_a_program_is_kept_for_so_many_programs() -> None:
    """A cache of a fixed number of results would hold programs, traces and sessions that nobody looks at any more."""
    held = [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and is_cached(node) and HELD & set(annotations_of(node))
    ]
    assert not held


HELD = {"Program", "Trace", "Session", "Model"}


def is_cached(function: ast.FunctionDef) -> bool:
    """Whether a function keeps a fixed number of results, or all of them."""
    return any(re.search(r"\b(lru_)?cache\b", ast.unparse(each)) for each in function.decorator_list)


def annotations_of(function: ast.FunctionDef) -> Iterator[str]:
    """The words of the annotations of a function's parameters."""
    for each in (*function.args.args, *function.args.kwonlyargs):
        yield from re.findall(r"\w+", ast.unparse(each.annotation) if each.annotation else "")


def methods(kind: type) -> int:
    """How many methods a class has, those included that it inherits within this project."""
    own = [each for each in kind.__mro__ if each.__module__.startswith("tui_transformer.")]
    names = {
        name
        for each in own
        for name, value in vars(each).items()
        if inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
    }
    return len(names)
