"""The explorer without a screen: a sentence for every key and command, and what is broken on purpose."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time

import numpy as np
import pytest
from typed_lines import WEIGHTS, typed

from tui_transformer.engine.changes import Set
from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.keys import (
    COMMANDS,
    WITHOUT_A_SCREEN,
    Typed,
    help_of,
    key_name,
    meanings,
    pressed,
    read,
)
from tui_transformer.explorer.plain.reader import DOING, TELLING, Reader
from tui_transformer.explorer.plain.run import run_plain
from tui_transformer.explorer.run import run
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.keys import KEYS
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position


def piped(session, monkeypatch, capsys, text: str) -> tuple[int, list[str]]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = run_plain(session)
    return code, capsys.readouterr().out.splitlines()


def test_a_key_is_answered_with_step_row_column_value_and_what_changed(reader):
    value = reader.explored.session.trace[WEIGHTS]
    said = typed(reader, "]", "]", "8l")
    assert said == (
        f"Attention weights, {WEIGHTS}, step 13 of 26, head 2 of 4, row where @0, column ? @8: {value[2, 0, 8]:.5g};"
        f" changed: column from where @0; value from {value[2, 0, 0]:.5g}."
    )


def test_an_answer_is_one_line(session, monkeypatch, capsys):
    lines = "\n".join(("", "where", *(f":{number}" for number in range(1, len(session.stops) + 1))))
    code, said = piped(session, monkeypatch, capsys, lines)
    assert code == 0
    assert len(said) == 1 + 2 + len(session.stops)
    assert all(line.endswith(".") for line in said)


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("", Typed("step.next")),
        ("l", Typed("cursor.right")),
        ("12l", Typed("cursor.right", 12)),
        ("]", Typed("head.next")),
        ("right 3", Typed("cursor.right", 3)),
        (":weights", Typed("go", words="weights")),
        ("/ the map", Typed("find", words="the map")),
        ("i the map", Typed("sentence.edit", words="the map")),
        ("gw", Typed("weights")),
        ("g w", Typed("weights")),
        ("menu g", Typed("menu", words="g")),
        ("/the map", Typed("find", words="the map")),
        ("e 0.5", Typed("cell.edit", words="0.5")),
        ("set -1", Typed("cell.edit", words="-1")),
        ("HEAD 2", Typed("head", words="2")),
        ("space", Typed("step.next")),
        ("right_square_bracket", Typed("head.next")),
        *((way, Typed("back")) for way in ("esc", "escape", "return")),
    ],
)
def test_lines_are_keys_counts_or_commands(line, meaning):
    assert read(line, meanings({})) == meaning


@pytest.mark.parametrize(
    "line",
    [
        "xyzzy",
        "\x1b[2J",
        "[bold]",
        "head",
        "head 9",
        "head -1",
        "cell 1",
        "row 9",
        "cell 0 9",
        "row x",
        "row 1.",
        ":nowhere",
        "u",
        "return",
        "\x00",
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(line, session, monkeypatch, capsys):
    code, said = piped(session, monkeypatch, capsys, f":weights\n{line}\nwhere\n")
    assert code == 1
    assert said[2].startswith("Not done: ")
    assert "\x1b" not in said[2]
    assert said[3] == said[1].partition(";")[0] + "."


def test_the_keys_of_the_user_are_used_and_named_by_help_and_words_may_stand_behind_their_signs():
    assert read("z", meanings({"head.next": "z,Z"})) == Typed("head.next")
    assert "space next step, backspace back, arrows or h j k l the cell, [ ] head" in help_of({})
    own = help_of({"step.next": "j", "cursor.down": "ctrl+n"})
    assert "j next step, backspace back, ← ctrl+n ↑ → the cell" in own
    known = meanings({"open": "comma", "sentence.edit": "percent_sign"})
    assert read(", story", known) == Typed("open", words="story")
    assert read("% who", known) == Typed("sentence.edit", words="who")


def test_every_key_of_the_screen_is_done_or_says_what_does_it_without_one(session):
    for action in ACTIONS:
        if action.id in KEYS and action.id not in DOING and action.id not in TELLING:
            reader = Reader(Exploration(History(session), Position(WEIGHTS)))
            with pytest.raises(Exception, match=r"is for the screen"):
                reader.answer(Typed(action.id))


def test_commands_that_are_named_exist_and_mean_something():
    from tui_transformer.cli.explore import COMMANDS as THERE

    named = {command.split()[0] for command in WITHOUT_A_SCREEN.values() if not command.startswith("--")}
    assert named <= set(THERE)
    assert set(COMMANDS.values()) <= {*DOING, *TELLING}


def test_a_changed_cell_changes_the_answer_and_comes_back(reader):
    said = typed(reader, ":output.logits", "cell 0 3", "e 99")
    assert "cell set by hand; answer from question 99.9 % to " in said
    assert typed(reader, "u").count("answer from") == 1
    assert typed(reader, "redo").count("answer from") == 1


def test_the_working_and_the_row_are_told_and_a_head_is_ablated(reader):
    assert "it is e^s ÷ Σ e^s: e^(" in typed(reader, "head 2", "cell 0 8", "enter")
    assert "the row sums to 1" in typed(reader, "line")
    assert typed(reader, "cell 0 0", "largest").count("column ? @8") == 1
    assert "head 2 of encoder.0.self_attention set to 0" in typed(reader, "a a")
    assert reader.explored.session.edits


def test_backwards_the_gradient_is_told(reader):
    said = typed(reader, "b b", f":{WEIGHTS}")
    gradient = reader.explored.session.gradients.values[WEIGHTS][0, 0, 0]
    assert f", gradient {gradient:.5g}".replace("-", "−").replace("e−0", "e−").replace("e−", "e-")[:14] in said


@pytest.mark.parametrize("model", ["dates", "attention", "decoder", "copy"])
def test_every_stop_of_every_kind_of_model_is_told(model, monkeypatch, capsys):
    session = open_session(ModelOptions(model, device="cpu"), None, None)
    code, said = piped(session, monkeypatch, capsys, "\n" * len(session.stops))
    assert (code, len(said)) == (0, 1 + len(session.stops))


def test_keys_have_the_names_of_the_table():
    brackets = [f"{side}_{kind}_bracket" for kind in ("square", "curly") for side in ("left", "right")]
    others = ["colon", "slash", "space", "plus", "minus", "asterisk", "semicolon", "question_mark", "comma"]
    assert [key_name(key) for key in "[]{}:/ +-*;?,"] == brackets + others


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_in_a_terminal_a_key_is_answered_at_once_and_words_are_asked_for():
    keeper, terminal = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", "--plain", "--model", "question"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        close_fds=True,
    )
    os.close(terminal)
    try:
        until(keeper, "help lists", "can be typed.")
        os.write(keeper, b":")
        until(keeper, "step: ")
        os.write(keeper, b"weights\n")
        until(keeper, "column where @0", "changed: step")
        os.write(keeper, b"\x1b[C")
        until(keeper, "column did @1", "changed: column")
        os.write(keeper, b"3\x1b[B")
        until(keeper, "row old @3", "changed: row")
        os.write(keeper, b"q")
        until(keeper, "The end.")
        assert program.wait(120) == 0
    finally:
        program.kill()
        program.wait()
        os.close(keeper)


def until(terminal: int, *wanted: str) -> None:
    """Read what the program writes, until it has written all of this."""
    text, end = "", time.monotonic() + 240
    while not all(each in text for each in wanted):
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode("utf-8", "replace")


def test_a_very_long_line_is_answered_once(session, monkeypatch, capsys):
    code, said = piped(session, monkeypatch, capsys, "a" * 300_000 + "\ngo to weights\n")
    assert code == 1
    assert len(said) == 3
    assert said[-1].startswith("Attention weights")


def test_a_key_that_a_lecture_cannot_name_is_said_before_anything_else(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[a]\ntitle = "A"\ntext = "press {key:nope}"\nstep = "tokens"\n')
    with pytest.raises(InputError, match=r"\[a\] {key:nope} is no key"):
        run(ModelOptions("question", device="cpu"), plain=True, tour=str(path))


def test_another_model_is_opened_and_undone(reader):
    said = typed(reader, "open copy")
    assert said.startswith("Vocabulary, step 1 of ")
    assert "changed: model to copy, sentence to " in said
    typed(reader, "undo")
    assert reader.explored.session.model.name == "question"
    with pytest.raises(InputError, match="write the model behind it"):
        typed(reader, "open")
    with pytest.raises(InputError, match="nowhere"):
        typed(reader, "open nowhere")


def test_the_vocabulary_begins_with_the_words_of_the_sentence(reader):
    assert typed(reader, ":vocabulary").partition(": ")[2].startswith("word where, ID 12, in the sentence;")
    assert "row 8 of 123: word [PAD], ID 0;" in typed(reader, "8j")
    assert "row where @0: 12;" in typed(reader, "k", "8k", "next")


@pytest.mark.parametrize(("stop", "line"), [("vocabulary", "row 123"), ("tokens", "row 9"), (WEIGHTS, "column 9")])
def test_a_row_or_column_that_is_not_there_is_refused(reader, stop, line):
    side, number = line.split()
    typed(reader, f":{stop}", f"{side} {int(number) - 1}")
    with pytest.raises(InputError, match=f"there is no {line}: {side}s go from 0 to {int(number) - 1}"):
        typed(reader, line)


@pytest.fixture
def scores(reader):
    """Of head 2, row 1, and the shares that they give."""
    typed(reader, "head 2", "row 1")
    trace = reader.explored.session.trace
    return trace[WEIGHTS.replace("weights", "scaled")][2, 1], trace[WEIGHTS][2, 1]


def test_both_softmaxes_of_the_row_are_told_with_every_number_on_the_way(reader, scores):
    given, shares = scores
    said = typed(reader, "softmax")
    assert said.startswith(f"Softmax of {WEIGHTS} · head 2 of 4 · row 1 did, in float32: where: s ")
    power, safe_power = np.exp(given[0]), np.exp(given[0] - given.max())
    parts = [part for part in said.split("; ") if part.startswith("hide: ") or ": where: " in part]
    assert f"s {spoken(float(given[0]))}, e^s {spoken(float(power))}, naive {spoken(float(shares[0]))}" in parts[0]
    assert f"e^(s − max) {spoken(float(safe_power))}, safe {spoken(float(shares[0]))}" in parts[0]
    assert f"Σ e^s {spoken(float(np.exp(given).sum()))}, Σ naive 1, Σ e^(s − max) " in said
    assert "Both are the same to" in said
    assert typed(reader, "gs") == said


def test_the_naive_one_is_broken_by_a_word_or_a_number_and_the_safe_one_stays(reader, scores):
    _, shares = scores
    for asked, what in (("softmax break", "all scores +"), ("softmax 200", "all scores + 200:")):
        said = typed(reader, asked)
        assert what in said
        assert f"naive NaN, s − max {spoken(0.0)}" in said
        assert f"safe {spoken(float(shares.max()))}" in said
        assert "The naive softmax is broken: e^s overflows" in said
    assert "all scores − 200:" in typed(reader, "softmax -200")
    assert "e^s is 0 everywhere: 0 ÷ 0" in typed(reader, "softmax -200")


def test_a_long_row_is_told_by_its_largest_scores(reader):
    typed(reader, "sentence " + "the map is hidden " * 5)
    assert "; 8 smaller ones are left out; Σ e^s" in typed(reader, f"go {WEIGHTS}", "softmax")


def test_a_row_that_is_masked_is_told_without_shares(session):
    scores = WEIGHTS.replace("weights", "scaled")
    masked = session.with_edits(Set(scores, -np.inf, rows=0))
    reader = Reader(Exploration(History(masked), Position(WEIGHTS)))
    assert "Neither gives shares" in typed(reader, "softmax")
    with pytest.raises(InputError, match="neither softmax gives shares here"):
        typed(reader, "softmax break")


def test_what_has_no_softmax_is_said(reader):
    for line, says in (
        ("softmax nan", "write break, or a number"),
        ("softmax soon", "softmax 'soon': write break, or a number"),
    ):
        with pytest.raises(InputError, match=says):
            typed(reader, line)
    with pytest.raises(InputError, match="there is no softmax here"):
        typed(reader, "go embedding.output", "softmax")


def test_keys_end_with_what_they_are_typed_at() -> None:
    for keys in (["\x1b"], ["a", "\x1b[A", "q"], ["\x1b[B", "\x1b[5~"], ["\x1b[12"], ["ü"]):
        reads, writes = os.pipe()
        os.write(writes, "".join(keys).replace("\x1b[B", "\x1bOB").encode())
        os.close(writes)
        assert list(pressed(reads)) == keys
        os.close(reads)


def test_something_is_broken_and_mended(reader):
    said = typed(reader, ":scaled", "cell 0 8", "break no-scale")
    assert "changed: broken: without ÷ √d_k; " in said
    assert "changed: mended: without ÷ √d_k; " in typed(reader, "break no-scale")
    assert not reader.explored.session.breaks
    with pytest.raises(InputError, match="nothing to break"):
        typed(reader, "break rotary-interleaved")
    with pytest.raises(InputError, match="'nonsense' is none of no-scale"):
        typed(reader, "break nonsense")


def test_breaks_are_told_with_numbers_and_made_with_one(reader):
    said = typed(reader, "breaks")
    parts = (
        "causal mask where there is none (causal-mask): question 99.9 % → statement",
        "(temperature): question 99.9 % → 75.6 %",
        "What changes nothing here: ",
        "(naive-softmax): no sent",
    )
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert "Not here: mask off (no-mask): its mask hides nothing" in said
    told = typed(reader, "breaks no-scale 0.5")
    assert told.startswith("scores ÷ √d_k × 0.5: question 99.91 % → 99.92 %; ")
    assert "nothing from 0 to 4 turns the answer" in told
    assert not reader.explored.session.breaks
    assert "broken: scores ÷ √d_k × 0.5" in typed(reader, "break no-scale 0.5")
    assert reader.explored.session.breaks == ("no-scale=0.5",)
    assert "broken: scores ÷ √d_k × 2" in typed(reader, "break no-scale=2")
    assert "mended: scores ÷ √d_k × 2" in typed(reader, "break")
    with pytest.raises(InputError, match="takes no number"):
        typed(reader, "break causal-mask 0.5")


def test_what_is_written_is_said_to_be_without_what_is_broken_and_with_the_edits():
    session = open_session(ModelOptions("story", device="cpu"), None, None)
    reader = Reader(Exploration(History(session), Position("decoder.1.self_attention.weights")))
    assert "the model writes" not in typed(reader, "generate 2")
    typed(reader, "break no-mask")
    assert "”; the model writes as it is, without what is broken: mask off" in typed(reader, "generate 2")
    typed(reader, "break", "set decoder.1.output += 1")
    assert "; the model writes with the edits of the explorer" in typed(reader, "generate 2")
