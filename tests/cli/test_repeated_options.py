"""Nothing that is given is lost: lists are put together, and what has one value is refused a second time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import Run
from typer._click import Command, Context
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from tui_transformer.cli.main import app
from tui_transformer.errors import UsageError

SAYS_THE_SAME_AGAIN = ("--version", "--help", "--show-completion", "--install-completion")


def commands(command: Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command with the words by which it is called, that without a name among them."""
    yield words, command
    if isinstance(command, TyperGroup):
        context = Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*words, name))


COMMANDS = dict(commands(get_command(app)))
OPTIONS = [
    (words, option)
    for words, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, TyperOption) and option.opts[0] not in SAYS_THE_SAME_AGAIN
]
OF_MANY_COMMANDS = ("--text", "--ids", "--decoder-ids", "--mask", "--edit")
LISTS = {
    *(f"explorer {option}" for option in ("--text", "--ids", "--decoder-ids", "--mask")),
    "ablate --targets",
    "ablate --tokens",
    "generate --edit",
    "patch --targets",
    "positions --dimensions",
    "score --targets",
    "show --targets",
    "show --tokens",
    "survey --layers",
    "survey --measure",
    "survey --tokens",
    "trace --targets",
    "trace --steps",
    "trace --tokens",
    "attribute --targets",
    "attribute --tokens",
    "patch --tokens",
    "patch --from-ids",
    "patch --rows",
    "patch --head",
    "generate --stop-ids",
    "vocab compare --vocab",
    "vocab build --special",
}


def called(words: tuple[str, ...], option: TyperOption) -> str:
    return f"{' '.join(words) or 'explorer'} {option.opts[0]}"


ONCE = [
    (words, option)
    for words, option in OPTIONS
    if not option.multiple and (option.secondary_opts or not option.is_flag)
]


OF_COMMANDS = dict(reversed(ONCE))
"""Of every command that has one, the first option of one value."""


def twice(option: TyperOption) -> list[str]:
    value = [] if option.is_flag else ["1"]
    other = option.secondary_opts[0] if option.secondary_opts else option.opts[0]
    return [option.opts[0], *value, other, *value]


@pytest.mark.parametrize(("words", "option"), OF_COMMANDS.items(), ids=[called(*each) for each in OF_COMMANDS.items()])
def test_an_option_of_one_value_is_refused_the_second_time(
    run: Run, words: tuple[str, ...], option: TyperOption
) -> None:
    ended = run(*words, *twice(option))
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1
    assert option.opts[0] in ended.err
    assert "is given 2 times and has one value: give it once" in ended.err


@pytest.mark.parametrize("words", OF_COMMANDS, ids=" ".join)
def test_so_is_every_other_option_of_the_command(words: tuple[str, ...]) -> None:
    for option in (option for of, option in ONCE if of == words):
        with pytest.raises(UsageError, match=f"{option.opts[0]}.* is given 2 times and has one value: give it once"):
            COMMANDS[words].parse_args(Context(COMMANDS[words]), twice(option))


def test_options_of_lists_are_those_that_may_be_given_again() -> None:
    several = {called(*each) for each in OPTIONS if each[1].multiple}
    assert several >= LISTS
    assert {name for name in several if not name.endswith(OF_MANY_COMMANDS)} <= LISTS
    assert all("may be given again" in (option.help or "").lower() for _, option in OPTIONS if option.multiple)


def test_a_metavar_of_a_list_says_what_the_option_takes() -> None:
    a_cell = {"--explain", "--cell"}
    lists = (each for each in OPTIONS if "," in (each[1].metavar or "") and not a_cell & set(each[1].opts))
    written = {called(*each) for each in lists}
    assert all(option.multiple for words, option in OPTIONS if called(words, option) in written)


@pytest.mark.parametrize("steps", [("tokens,*.scores",), ("tokens", "*.scores"), ("*.scores", "tokens,tokens")])
def test_patterns_between_commas_or_given_again_are_all_written(
    run: Run, tmp_path: Path, steps: tuple[str, ...]
) -> None:
    assert run("trace", "--out", "a.npz", *(word for each in steps for word in ("--steps", each))).code == 0
    with np.load(tmp_path / "a.npz") as archive:
        assert archive.files == ["tokens", "encoder.0.self_attention.scores"]


@pytest.mark.parametrize("steps", ["tokens,nosuch", "nosuch,tokens"])
def test_a_pattern_that_matches_nothing_is_named(run: Run, tmp_path: Path, steps: str) -> None:
    ended = run("trace", "--out", "a.npz", "--steps", steps)
    assert (ended.code, list(tmp_path.glob("*.npz"))) == (1, [])
    assert "no step is called 'nosuch'" in ended.err


SAME = {
    "ids": (("show", "embedding.output"), "--ids", ("4,5", "6")),
    "decoder ids": (("show", "--model", "encoder-decoder", "decoder.0.output"), "--decoder-ids", ("2,4", "5")),
    "targets": (("show", "weights", "--ids", "4,5,6", "--gradient"), "--targets", ("7,-1", "9")),
    "from-ids": (("patch", "weights", "--ids", "4,5,6"), "--from-ids", ("7,8", "9")),
    "rows": (("patch", "weights", "--ids", "4,5,6", "--from-ids", "7,8,9"), "--rows", ("0", "2")),
    "heads": (("patch", "weights", "--ids", "4,5,6", "--from-ids", "7,8,9"), "--head", ("0", "2")),
    "stop-ids": (("generate", "--max-new-tokens", "9"), "--stop-ids", ("13", "14,15")),
    "vocabularies": (("vocab", "compare", "the waves"), "--vocab", ("waves", "dog,nation")),
}


@pytest.mark.parametrize(("command", "option", "parts"), SAME.values(), ids=SAME)
def test_a_list_given_again_is_the_list_between_commas(
    run: Run, command: tuple[str, ...], option: str, parts: tuple[str, ...]
) -> None:
    again = run(*command, *(word for part in parts for word in (option, part)))
    assert again.code == 0
    assert again.out == run(*command, option, ",".join(parts)).out
    assert (again.out == run(*command, option, parts[-1]).out) == (command[0] == "generate")


def test_special_names_given_again_are_one_list(run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a b a\n")
    build = ("vocab", "build", "corpus.txt")
    again = run(*build, "--special", "<p>,<u>", "--special", "<b>,<e>")
    assert (again.code, again.out) == (0, run(*build, "--special", "<p>,<u>,<b>,<e>").out)


def test_a_file_with_a_comma_in_its_name_is_one_vocabulary(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a,b.txt").write_text("one two")
    assert "a,b.txt" in run("vocab", "compare", "one", "--vocab", "a,b.txt").out


def test_every_stop_that_is_given_ends_the_text(run: Run) -> None:
    written = run("generate", "--max-new-tokens", "9", "--stop-ids", "0").out
    first, second = (str(i) for i in _ids(run)[1:3])
    assert run("generate", "--max-new-tokens", "9", "--stop-ids", first, "--stop-ids", second).out != written
    both = run("generate", "--max-new-tokens", "9", "--stop-ids", second, "--stop-ids", first, "--format", "json").out
    assert len(both.splitlines()) == 2


def _ids(run: Run) -> list[int]:
    lines = run("generate", "--max-new-tokens", "9", "--stop-ids", "0", "--format", "json").out.splitlines()
    return [json.loads(line)["id"] for line in lines]


def test_a_flag_given_again_says_the_same(run: Run) -> None:
    assert run("show", "weights", "--all", "--all").code == 0
