"""Options that are given again, values of edits of any kind, and input that is broken: used or refused in one line."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Run, traced
from hostile import COUNTS, damaged, hold, read_or_refused
from hypothesis import strategies as st
from safetensors.numpy import save
from typer._click import Command, Context
from typer.core import TyperGroup, TyperOption
from typer.main import get_command

from tui_transformer.cli.main import app
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.session.edit_format import changes

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
OF_LISTS = {
    "explorer": ("--text", "--ids", "--decoder-ids", "--mask"),
    "ablate": ("--targets", "--tokens"),
    "attribute": ("--targets", "--tokens"),
    "features": ("--feature",),
    "generate": ("--edit", "--stop-ids"),
    "graph": ("--at", "--features", "--target"),
    "patch": ("--targets", "--tokens", "--from-ids", "--rows", "--head", "--senders", "--receivers"),
    "positions": ("--dimensions",),
    "score": ("--targets",),
    "show": ("--targets", "--tokens"),
    "survey": ("--layers", "--measure", "--tokens"),
    "trace": ("--targets", "--steps", "--tokens"),
    "vocab compare": ("--vocab",),
    "vocab build": ("--special",),
}
LISTS = {f"{command} {option}" for command, options in OF_LISTS.items() for option in options}


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
def test_an_option_of_one_value_is_refused_the_second_time(run: Run, words, option: TyperOption) -> None:
    ended = run(*words, *twice(option))
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1
    assert option.opts[0] in ended.err
    assert "is given 2 times and has one value: give it once" in ended.err


def test_so_is_every_other_option_of_the_command() -> None:
    for words, option in ONCE:
        with pytest.raises(UsageError, match=f"{option.opts[0]}.* is given 2 times and has one value: give it once"):
            COMMANDS[words].parse_args(Context(COMMANDS[words]), twice(option))


def test_options_of_lists_are_those_that_may_be_given_again() -> None:
    several = {called(*each) for each in OPTIONS if each[1].multiple}
    assert several >= LISTS
    assert {name for name in several if not name.endswith(OF_MANY_COMMANDS)} <= LISTS
    assert all("may be given again" in (option.help or "").lower() for _, option in OPTIONS if option.multiple)
    # a metavar says what the option takes
    a_cell = {"--explain", "--cell"}
    lists = (each for each in OPTIONS if "," in (each[1].metavar or "") and not a_cell & set(each[1].opts))
    written = {called(*each) for each in lists}
    assert all(option.multiple for words, option in OPTIONS if called(words, option) in written)


def test_patterns_between_commas_or_given_again_are_all_written(run: Run, tmp_path: Path) -> None:
    for steps in ("tokens,nosuch", "nosuch,tokens"):
        ended = run("trace", "--out", "a.npz", "--steps", steps)
        assert (ended.code, list(tmp_path.glob("*.npz"))) == (1, [])
        assert "no step is called 'nosuch'" in ended.err
    for steps in (("tokens,*.scores",), ("tokens", "*.scores"), ("*.scores", "tokens,tokens")):
        written = traced(run, "a", *(word for each in steps for word in ("--steps", each)))
        assert list(written) == ["tokens", "encoder.0.self_attention.scores"]
    # a write that fails leaves the old file
    before = (tmp_path / "a.npz").read_bytes()
    assert run("trace", "--out", "a.npz", "--steps", "nosuch").code == 1
    assert (tmp_path / "a.npz").read_bytes() == before


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
def test_a_list_given_again_is_the_list_between_commas(run, command, option, parts):
    again = run(*command, *(word for part in parts for word in (option, part)), code=0)
    assert again.out == run(*command, option, ",".join(parts)).out
    assert (again.out == run(*command, option, parts[-1]).out) == (command[0] == "generate")


def test_special_names_given_again_are_one_list(run: Run, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a b a\n")
    build = ("vocab", "build", "corpus.txt")
    again = run(*build, "--special", "<p>,<u>", "--special", "<b>,<e>")
    assert (again.code, again.out) == (0, run(*build, "--special", "<p>,<u>,<b>,<e>").out)
    # a file with a comma in its name is one vocabulary
    (tmp_path / "a,b.txt").write_text("one two")
    assert "a,b.txt" in run("vocab", "compare", "one", "--vocab", "a,b.txt").out
    # a flag says the same
    assert run("show", "weights", "--all", "--all").code == 0


def test_every_stop_that_is_given_ends_the_text(run: Run) -> None:
    def ids(*stops: str) -> list[str]:
        given = [word for stop in stops for word in ("--stop-ids", stop)]
        lines = run("generate", "--max-new-tokens", "9", *given, "--format", "json").out.splitlines()
        return [str(json.loads(line)["id"]) for line in lines]

    written = ids("0")
    _, first, second, *_ = written
    assert ids(first, second) == ids(second, first) == written[:2]


# Bad input


def test_arguments_that_are_refused_are_quoted_harmlessly(run: Run) -> None:
    for arguments in (("\x1b[31m\u202e",), ("--\x1b[31m\u202e",), ("vocab", "list", "\x1b[31m\u202e")):
        ended = run(*arguments, code=2)
        assert "Error" in ended.err
        assert not {"\x1b", "\u202e"} & set(ended.err)
    err = run("vocab", "check", "a\x1b[31m").err
    assert "\x1b" not in err
    # close names are offered
    assert "encoder.0.self_attention.scores" in run("show", "scors", "--model", "encoder").err


def packed(write: Callable[..., None], *arrays: np.ndarray, **named: Any) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arrays, **named)
    return buffer.getvalue()


BROKEN = {
    "zip without arrays": ("a.txt", b"a"),
    "no NPY inside": ("tokens.npy", b"junk"),
    "words": ("tokens.npy", packed(np.save, np.array(["a"]))),
}


def test_a_broken_trace_is_named_in_one_line(run: Run, tmp_path: Path) -> None:
    for name, data in BROKEN.values():
        with zipfile.ZipFile(tmp_path / "broken.npz", "w") as archive:
            archive.writestr(name, data)
        run("diff", "broken.npz", "encoder", "--ids", "1,2,3,4,5,6,7,1").refuses("broken.npz", 1)


# Values of edits: texts of any kind and files that are broken


STEP = "encoder.0.output"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("encoder", device="cpu")


def computed(model: Model, text: str) -> None:
    """The step as it is with an edit, which has the shape that it had."""
    program = model.program(3)
    trace = model.trace(ids=[1, 2, 3]).edited(changes(model, program, [text]))
    assert trace[STEP].shape == program.shape(STEP)


VECTOR = np.arange(8, dtype=np.float32)
FILES = {
    "v.npy": packed(np.save, VECTOR),
    "v.npz": packed(np.savez, one=VECTOR),
    "v.safetensors": save({"one": VECTOR}),
}


@COUNTS
@pytest.mark.parametrize("name", FILES)
def test_broken_files_of_values(tmp_path, model, name, count):
    path = tmp_path / name

    def check(data: bytes) -> None:
        path.write_bytes(data)
        read_or_refused(lambda: computed(model, f"{STEP} += {path}"), path, tmp_path / STEP, tmp_path / "--edit")

    hold(count, check, data=damaged(FILES[name]))


PIECES = [*"[]0:,= -", "0.output", STEP, "+=", "*=", "/=", "1e999", "2*", "mean", "'the'", "x.npy"]


@COUNTS
def test_texts_of_edits(model, count):
    def check(text: str) -> None:
        try:
            computed(model, text)
        except InputError as refused:
            line = str(refused)
            assert len(line.splitlines()) == 1, line
            assert len(line) < 1000, line

    texts = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
    hold(count, check, text=st.one_of(texts, texts.map(lambda place: f"{STEP}[{place}] = 1"), st.text(max_size=30)))
