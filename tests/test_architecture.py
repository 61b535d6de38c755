"""ARCHITECTURE.md is true, as far as that can be looked up, and the explorer keeps the form that it describes."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest
from textual.widget import Widget

import tui_transformer
from tui_transformer import explorer
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState

ROOT = Path(__file__).parent.parent
PACKAGE = Path(tui_transformer.__file__).parent
EXPLORER = PACKAGE / "explorer"
SESSION = PACKAGE / "session"
VALUES = ("session", "sentences", "position", "view_state")
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PAGES = {ROOT: TEXT} | {page.parent: page.read_text(encoding="utf-8") for page in PACKAGE.glob("*/README.md")}
"""The document, and the pages of the folders."""

MOST_WORDS = 900

MOST_METHODS, MOST_METHODS_ON_SCREEN = 45, 40
MOST_DEEP = 3
MOST_LOOSE = 8
MOST_LINES = 400
BESIDE = ("tests", "benchmarks", "screenshots")

CEILINGS = {
    "analysis": (7_960, 38),
    "cli": (7_240, 30),
    "course": (2_795, 37),
    "diagnosis": (7_060, 26),
    "engine": (7_370, 33),
    "explorer": (26_235, 122),
    "features": (970, 5),
    "generation": (1_290, 6),
    "guide": (520, 3),
    "learning": (2_255, 11),
    "model": (10_120, 44),
    "report": (1_370, 8),
    "session": (6_490, 29),
    "survey": (1_620, 8),
    "text": (3_275, 17),
    "views": (2_955, 15),
}
"""Lines and files of each package at most: what needs more joins something first, and what joins lowers its own."""


def paths(text: str) -> list[str]:
    """Everything in a page that is written as a file or folder."""
    written = re.findall(r"`([\w./-]+)`", text)
    return sorted({path for path in written if path.endswith((".py", ".tcss", "/")) or "/" in path})


HOMES = (ROOT, PACKAGE, EXPLORER, *(EXPLORER / part for part in ("guard", "main", "shell", "tools")))
"""Where a path may begin, beside the folder that the page is in."""


def test_every_path_that_the_pages_name_is_there() -> None:
    named = [(home, path) for home, text in PAGES.items() for path in paths(text) if "NAME" not in path]
    gone = [path for home, path in named if not any((each / path).exists() for each in (home, *HOMES))]
    assert gone == []


def test_every_name_that_the_pages_say_is_in_a_file_is_there() -> None:
    gone = []
    for home, text in PAGES.items():
        for name, path in re.findall(r"`(\w+)`\s+(?:of|in)\s+`([\w/]+\.py)`", text):
            files = [each / path for each in (home, *HOMES) if (each / path).exists()]
            gone += [] if any(re.search(rf"\b{name}\b", each.read_text("utf-8")) for each in files) else [(name, path)]
    assert gone == []


def test_the_document_is_a_page() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


def test_every_folder_of_the_package_has_a_row() -> None:
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    assert folders <= set(re.findall(r"^\| `(\w+)/` \|", TEXT, re.MULTILINE))
    assert {PACKAGE / folder / "README.md" for folder in folders - {"trained"}} <= {*PACKAGE.glob("*/README.md")}


@pytest.mark.parametrize("name", CEILINGS)
def test_a_package_stays_below_its_ceiling(name: str) -> None:
    files, (most_lines, most_files) = [*(PACKAGE / name).rglob("*.py")], CEILINGS[name]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in files)
    stands = f"{name}: {lines:,} lines of {most_lines:,}, {len(files)} files of {most_files}"
    print(stands)  # noqa: T201 - with -s, where each package stands
    assert lines <= most_lines, stands
    assert len(files) <= most_files, stands


def test_few_modules_of_the_explorer_lie_loose() -> None:
    assert len(list(EXPLORER.glob("*.py"))) <= MOST_LOOSE


def test_nothing_in_the_explorer_is_imported_by_a_name_in_a_string() -> None:
    assert not files_with(r"import_module|__import__|entry_points|from importlib import|exec\(|eval\(")


def test_timers_are_set_in_one_way() -> None:
    assert files_with(r"\.set_timer\(") == {"guard/app.py", "guard/event_queue.py"}


@pytest.mark.parametrize(
    ("package", "most"),
    [(tui_transformer, MOST_METHODS), (explorer, MOST_METHODS_ON_SCREEN)],
    ids=("package", "explorer"),
)
def test_every_class_is_small(package: ModuleType, most: int) -> None:
    every = classes(package)
    large = {f"{each.__module__}.{each.__name__}": size for each in every if (size := methods(each)) > most}
    assert not large


def test_widgets_and_families_are_shallow() -> None:
    """What is drawn and what is read of a checkpoint is looked up in few classes; the rest is composed."""
    every = [each for each in classes(tui_transformer) if issubclass(each, Widget | BaseConfig)]
    deep = {each.__name__: own for each in every if len(own := own_classes(each)) > MOST_DEEP}
    assert len(every) > 60
    assert not deep


def test_screens_stand_on_one_shallow_base() -> None:
    """A screen, the form that its kind has (dialog or overview), and the base of all; the rest is composed."""
    screens = [each for each in classes(explorer) if issubclass(each, ExplorerScreen)]
    deep = {each.__name__: own for each in screens if len(own := own_classes(each)) > MOST_DEEP}
    assert len(screens) > 30
    assert not deep


@pytest.mark.parametrize("kind", [Session, Position, ViewState])
def test_what_says_everything_on_the_screen_is_a_value(kind: type) -> None:
    frozen = [each for each in kind.__mro__ if is_dataclass(each) and each.__dataclass_params__.frozen]
    assert frozen == own_classes(kind)


def test_a_session_is_never_written_to() -> None:
    """What is worked out of it is in the cache that it is made with."""
    written = files_with(r"\bvars\([a-z]|__dict__|__setattr__|\bsetattr\(", SESSION)
    assert written == {"sentences.py"}
    assert (SESSION / "sentences.py").read_text(encoding="utf-8").count("__setattr__") == 1
    assert "cached_property" not in "".join((SESSION / f"{name}.py").read_text("utf-8") for name in VALUES)


def test_private_names_of_textual_are_used_in_the_guard_alone() -> None:
    assert not [path for path in files_with(r"textual(\.\w+)*\._") if not path.startswith("guard/")]
    used = {
        f"{each.__module__}.{each.__name__}: {', '.join(names)}"
        for each in classes(explorer)
        if ".guard." not in each.__module__ and (names := sorted(private_names(each) & private_names_of_textual(each)))
    }
    assert not used


def private_names(kind: type) -> set[str]:
    """Names with one underscore in front that a class defines, or reads from anything."""
    return set(re.findall(r"(?<![\w])_[a-z]\w*", inspect.getsource(kind)))


def private_names_of_textual(kind: type) -> set[str]:
    """Those that the classes of Textual have from which a class inherits."""
    return set().union(*(names_in(each) for each in kind.__mro__ if each.__module__.startswith("textual.")))


@cache
def names_in(kind: type) -> set[str]:
    names = {name for name in vars(kind) if re.match("_[a-z]", name)}
    return names | set(re.findall(r"self\.(_[a-z]\w*)", inspect.getsource(kind)))


def test_keys_are_looked_at_only_where_a_text_is_typed_or_a_number() -> None:
    """All others are declared, so that they can be changed, and mean one thing."""
    assert files_with(r"event\.key\b|def _?key_[a-z]\w*\(self|\.bind\(") == {
        "main/screen.py",
        "main/panes/card.py",
        "main/predict.py",
        "guard/event_queue.py",
        "shell/line_input.py",
        "shell/prompt.py",
        "tools/open.py",
    }


def files_with(pattern: str, folder: Path = EXPLORER) -> set[str]:
    """The files of a folder in which something is written, by their paths in it."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_files_are_short() -> None:
    """Of one subject, read at one go."""
    files = (path for folder in (PACKAGE, *(ROOT / name for name in BESIDE)) for path in folder.rglob("*.py"))
    sizes = {path.relative_to(ROOT): len(path.read_bytes().splitlines()) for path in files}
    assert {path: size for path, size in sizes.items() if size > MOST_LINES} == {}


def test_the_contracts_are_about_every_folder() -> None:
    """Of the package, but for the two that draw; circles are looked for in all of it."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        core, *others = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    parts = {each.stem for each in PACKAGE.iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()}
    drawing = {"__init__", "__main__", "cli", "explorer"}
    assert set(core["source_modules"]) == {f"tui_transformer.{part}" for part in parts - drawing}
    assert [each["ancestors"] for each in others if each["type"] == "acyclic_siblings"] == [["tui_transformer"]]


def test_no_files_import_each_other_in_a_circle() -> None:
    """Nor a folder's own file and those in it; imports in functions and under TYPE_CHECKING count."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("tui_transformer", cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def classes(package: ModuleType) -> Iterator[type]:
    """Every class of a package, but for modules whose library is not installed; exercises are programs of their own."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "exercises." in info.name or info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            assert not (error.name or "").startswith(package.__name__), error  # noqa: PT017 - a part of ours is missing
            continue
        for each in vars(module).values():
            if inspect.isclass(each) and each.__module__ == module.__name__:
                yield each


def test_training_alone_has_a_thread_besides_the_worker_and_a_model_that_is_read() -> None:
    """Work is asked for; the two exceptions are said in ARCHITECTURE.md. asyncio's own thread is given one name."""
    made = r"thread=True|Thread\(|Executor\(|threading\.Timer|to_thread|in_executor|start_new_thread|multiprocessing"
    assert files_with(made) == {"guard/app.py", "shell/worker.py", "tools/train/driver.py", "first_frame.py"}


def test_nothing_that_belongs_to_a_program_is_kept_for_so_many_programs() -> None:
    """A cache of a fixed number of results would hold programs, traces and sessions that nobody looks at any more."""
    held = [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and is_cached(node) and HELD & set(kept_by(node))
    ]
    assert not held


HELD = {"Program", "Trace", "Session", "Model", "self"}


def is_cached(function: ast.FunctionDef) -> bool:
    """Whether a function keeps a fixed number of results, or all of them."""
    return any(re.search(r"\b(lru_)?cache\b", ast.unparse(each)) for each in function.decorator_list)


def kept_by(function: ast.FunctionDef) -> Iterator[str]:
    """The parameters of a function, and the words of their annotations."""
    arguments = function.args
    for each in filter(None, (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg)):
        yield from re.findall(r"\w+", ast.unparse(each))


def own_classes(kind: type) -> list[type]:
    """A class, and those of this project that it inherits from."""
    return [each for each in kind.__mro__ if each.__module__.startswith("tui_transformer.")]


def methods(kind: type) -> int:
    """How many methods a class has, those included that it inherits within this project."""
    names = {
        name
        for each in own_classes(kind)
        for name, value in vars(each).items()
        if inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
    }
    return len(names)


def test_the_folder_of_a_user_is_looked_up_in_one_place() -> None:
    """Elsewhere it would end in an error that nobody expects, where nobody knows that user."""
    looking = [path for path in PACKAGE.rglob("*.py") if ".expanduser(" in path.read_text(encoding="utf-8")]
    assert looking == [PACKAGE / "files.py"]


def test_json_and_toml_files_have_one_reader() -> None:
    """Elsewhere there are lines of logs, what this program wrote for itself, and JSON inside of other formats."""
    read = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"json\.loads?\(|tomllib\.loads?\(", path.read_text(encoding="utf-8"))
    }
    assert read - {"files.py"} == {
        "analysis/survey/sums.py",
        "course/child.py",
        "explorer/tools/runs.py",
        "learning/log.py",
        "model/weights_file.py",
        "survey/work.py",
        "text/guarded.py",
        "text/guarded_child.py",
        "text/tokenizer_files.py",
    }
