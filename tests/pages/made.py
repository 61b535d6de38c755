"""Pages that list what the program has: by hand down to a line that says so, and below it made from the program."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from typer._click import Command, Context
from typer._click.core import Parameter
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from benchmarks import parity
from tui_transformer.cli.main import app
from tui_transformer.explorer.shell.actions import SCREENS
from tui_transformer.explorer.shell.actions.main import FOCUSED
from tui_transformer.explorer.shell.keys import CLASSIC, UNBOUND, Action, in_menu, spelled
from tui_transformer.guide.lecture import FIELDS, OF_ALL
from tui_transformer.guide.texts import tour, tour_question, tours
from tui_transformer.model.families import ALIASES, FAMILIES, family_of
from tui_transformer.model.families.bart import BartConfig
from tui_transformer.model.families.bert import EncoderConfig
from tui_transformer.model.families.t5 import T5Config
from tui_transformer.model.gguf.model import ARCHITECTURES
from tui_transformer.session.tour_stop import model_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tui_transformer"
MARK = "<!-- What follows is written by `python -m tests.pages --write`. -->\n"

Rows = Iterable[Iterable[str]]


def written(name: str) -> str:
    """A page as it stands."""
    return (FOLDER / name).read_text(encoding="utf-8")


def filled(name: str) -> str:
    """A page with what the program has now below its mark."""
    if name == HELP:
        return "\n".join(PAGES[name]()) + "\n"
    by_hand, mark, _ = written(name).partition(MARK)
    if not mark:
        raise ValueError(f"{name} has no line {MARK.strip()}")
    return by_hand + MARK + "\n" + "\n".join(PAGES[name]()) + "\n"


def table(heads: Iterable[str], rows: Rows) -> Iterator[str]:
    """A table in Markdown; a bar in a cell is escaped."""
    yield _row(heads)
    yield _row("---" for _ in heads)
    yield from map(_row, rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", r"\|") for cell in cells) + " |"


# Keys


def keys_page() -> Iterator[str]:
    """Every screen with its keys, their meanings, and the names by which a keymap file changes them."""
    everywhere = _everywhere()
    for screen, actions in SCREENS.items():
        own = [
            action
            for action in actions
            if action.keys and (screen == "main" or (action.direct and _sign(action) not in everywhere))
        ]
        if own:
            yield f"## {screen[0].upper()}{screen[1:]}"
            yield ""
            rows = ([_keys(each), each.title, f"`{each.id}`" if each.id else ""] for each in own)
            yield from table(("key", "what it does", "name"), rows)
    yield "## Classic"
    yield ""
    yield "What `classic = true` gives, where it is another key."
    yield ""
    titles = {action.id: action.title for actions in SCREENS.values() for action in actions}
    classic = [(keys.split(","), name) for name, keys in CLASSIC.items() if not keys.startswith(UNBOUND)]
    yield from table(
        ("key", "what it does", "name"),
        ([" ".join(f"`{spelled(key)}`" for key in keys), titles[name], f"`{name}`"] for keys, name in classic),
    )
    yield "## A pane that has the keys"
    yield ""
    shown = ((pane, each) for pane, actions in FOCUSED.items() for each in actions if each.shown)
    yield from table(("pane", "key", "what it does"), ((pane, f"`{each.shown}`", each.title) for pane, each in shown))


def _everywhere() -> set[tuple[str, str]]:
    """What the main screen says already."""
    return {_sign(action) for action in SCREENS["main"]}


def _sign(action: Action) -> tuple[str, str]:
    return action.id, action.title


def _keys(action: Action) -> str:
    keys = [f"`{spelled(key)}`" for key in action.keys.split(",") if not key.startswith(UNBOUND)]
    if not action.id:  # a widget of the screen has it
        keys = [f"`{key}`" for key in action.shown.split()]
    elif not action.direct:
        keys = [f"`{key}`" for key in in_menu(action.id).split()]
    return " ".join(keys) or "palette"


# Commands


def commands_page() -> Iterator[str]:
    """Every command: what it does, an example, its arguments and the options that the explorer has not."""
    root = get_command(app)
    shared = _options(root, set())
    yield "## Options of the explorer, and of every command that reads a model"
    yield ""
    yield from table(("option", ""), shared)
    common = {option for option, _ in shared}
    yield from _below("tui-transformer", root, common)


def _below(name: str, group: Command, common: set[str]) -> Iterator[str]:
    """The commands of a group, by name; nothing where it is none."""
    if isinstance(group, TyperGroup):
        context = Context(group)
        for below in sorted(group.list_commands(context)):
            command = group.get_command(context, below)
            assert command is not None
            yield from _command(f"{name} {below}", command, common)


def _command(name: str, command: Command, common: set[str]) -> Iterator[str]:
    yield f"## `{name}`" if name.count(" ") == 1 else f"### `{name}`"
    yield ""
    yield from _help(command)
    own = _arguments(command) + _options(command, common)
    if own:
        yield from table(("option", ""), own)
    elif not isinstance(command, TyperGroup):
        yield "No options of its own."
        yield ""
    yield from _below(name, command, common)


def _help(command: Command) -> Iterator[str]:
    """The paragraphs of a help text; an example stands in a block of its own."""
    for paragraph in re.split(r"\n\s*\n", (command.help or "").replace("\b\n", "").strip()):
        text = " ".join(paragraph.split())
        label, _, example = text.partition(": ")
        if label in ("Example", "Examples"):
            yield from ("```sh", example, "```", "")
        else:
            yield from (text, "")


def _arguments(command: Command) -> list[tuple[str, str]]:
    with Context(command) as context:
        arguments = (each for each in command.get_params(context) if each.param_type_name == "argument")
        return [(f"`{each.make_metavar(context)}`", _said(getattr(each, "help", ""))) for each in arguments]


def _options(command: Command, without: set[str]) -> list[tuple[str, str]]:
    with Context(command) as context:
        records = (each.get_help_record(context) for each in command.get_params(context) if _is_shown(each))
        rows = [(f"`{record[0]}`", _said(record[1])) for record in records if record is not None]
    return [row for row in rows if row[0] not in without]


def _is_shown(parameter: Parameter) -> bool:
    return isinstance(parameter, TyperOption) and "--help" not in parameter.opts


def _said(text: str | None) -> str:
    return " ".join((text or "").split()).replace("<", "\\<")


# Models


def models_page() -> Iterator[str]:
    """The trained models with what was measured, and every family by the name that its files have."""
    yield "## Trained, in the program"
    yield ""
    measured = {path.parent.name: _about(path) for path in sorted((FOLDER / "trained").glob("*/about.toml"))}
    keys = ("weights", "steps", "minutes", "loss", "accuracy", "exact")
    rows = ([f"`{name}`", *(str(about.get(key, "")) for key in keys)] for name, about in measured.items())
    yield from table(("`--model`", *keys), rows)
    yield "## Families of checkpoints"
    yield ""
    yield from table(("`model_type`", "a", "in GGUF files"), _families())


def _about(path: Path) -> Mapping[str, object]:
    with path.open("rb") as file:
        return tomllib.load(file)


def _families() -> Iterator[tuple[str, str, str]]:
    gguf: dict[str, list[str]] = {}
    for name, architecture in ARCHITECTURES.items():
        gguf.setdefault(architecture.model_type, []).append(f"`{name}`")
    for name in sorted({*FAMILIES, *ALIASES} - {"vanilla", "attention"}):
        yield f"`{name}`", _kind(name), ", ".join(gguf.get(ALIASES.get(name, name), ["–"]))


def _kind(name: str) -> str:
    family = family_of(name)
    both = issubclass(family, BartConfig | T5Config)
    return "encoder–decoder" if both else "encoder" if issubclass(family, EncoderConfig) else "decoder"


# Lectures


def lectures_page() -> Iterator[str]:
    """The fields of a lecture with what they are for, and the tours of the program."""
    yield "## Of the whole lecture, under `[about]`"
    yield ""
    yield from table(("field", "what it is for"), ((f"`{field}`", does) for field, does in OF_ALL.items()))
    yield "## Of a stop"
    yield ""
    rows = ((f"`{name}`", field.what, field.does) for name, field in FIELDS.items())
    yield from table(("field", "what it has to be", "what it is for"), rows)
    yield "## Tours of the program"
    yield ""
    told = ((f"`{name}`", tour_question(name), str(len(tour(name))), model_of(name) or "any") for name in tours())
    yield from table(("`--tour`", "what it answers", "stops", "model"), told)


# Parity


def parity_page() -> Iterator[str]:
    """What `python -m benchmarks parity` measures, as a table."""
    rows = [(f"`{folder.name}`", *_differences(folder)) for folder in parity.folders()]
    yield from table(("reference", "in float64", "in float32", "arrays"), rows)


def _differences(folder: Path) -> tuple[str, str, str]:
    exact, single = (parity.differences(folder, dtype) for dtype in ("float64", "float32"))
    return f"{exact.absolute:.1e}", f"{single.absolute:.1e}", str(exact.arrays)


def help_page() -> Iterator[str]:
    """What `tui-transformer --help` says where lines have 80 columns, which it then says without loading more.

    Then the same of every command, a form feed and its name before it.
    """
    yield from _helps(Context(get_command(app), info_name="tui-transformer", terminal_width=78), "")


def _helps(context: Context, name: str) -> Iterator[str]:
    yield f"\f{name}\n{context.get_help()}" if name else context.get_help()
    if isinstance(group := context.command, TyperGroup):
        for below in group.list_commands(context):
            command = group.get_command(context, below)
            assert command is not None
            inside = Context(command, parent=context, info_name=below, terminal_width=78)
            yield from _helps(inside, f"{name} {below}".strip())


HELP = "cli/help.txt"
PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "KEYS.md": keys_page,
    "COMMANDS.md": commands_page,
    "MODELS.md": models_page,
    "LECTURES.md": lectures_page,
    "PARITY.md": parity_page,
    HELP: help_page,
}
