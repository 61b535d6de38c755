"""`--edit`: the same as the change in Python, in every command that computes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import Run
from safetensors.numpy import load_file

from tui_transformer.analysis.metrics import Metric
from tui_transformer.engine.changes import OPEN, Add, Scale, Set
from tui_transformer.engine.edits import Ablate, Patch
from tui_transformer.model import Model
from tui_transformer.session.edit_format import changes
from tui_transformer.session.session import Session

GIVEN = ("--model", "copy", "--ids", "5,6,7,8,5")
LINES = "who did it\nthe cat sat\n\n"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("copy", device="cpu")


@pytest.mark.parametrize(
    ("text", "kind", "values", "place"),
    [
        ("0.output = 0", Set, 0.0, (None, None, None)),
        ("0.output[2] += -1.5", Add, -1.5, (None, range(2, 3), None)),
        ("0.output[:,3:5]*=.5", Scale, 0.5, (None, None, range(3, 5))),
        ("0.self_attention.context[1, 2:] -= 2*3 + 1", Add, -7.0, (range(1, 2), range(2, OPEN), None)),
        ("0.output /= 4", Scale, 0.25, (None, None, None)),
        ("0.self_attention.masked[0,1,0] = -inf", Set, -np.inf, (range(1), range(1, 2), range(1))),
    ],
)
def test_a_place_an_operation_and_a_value(model, text, kind, values, place):
    (change,) = changes(model, model.program(5), [text])
    assert isinstance(change, kind)
    assert float(change.values) == values
    assert (change.heads, change.rows, change.columns) == place


def test_arrays_and_means_of_texts_are_values(tmp_path: Path) -> None:
    model = Model.load("story", device="cpu")
    program, name = model.program(4), "decoder.0.feed_forward.residual"
    vector = np.arange(80.0)
    np.save(tmp_path / "v.npy", vector)
    np.savez(tmp_path / "all.npz", one=vector, two=-vector)
    (tmp_path / "lines.txt").write_text("The fox found\nOnce there was a crow\n\n")
    own = {text: model.trace(text)[name].astype(np.float64) for text in ("The fox found", "Once there was a crow")}
    both = np.concatenate(list(own.values())).mean(axis=0)
    of_heads = [model.trace(text)["decoder.0.self_attention.context"].astype(np.float64) for text in own]
    wanted = {
        f"0.output += 2*{tmp_path}/v.npy": 2 * vector,
        f"0.output += {tmp_path}/all.npz:two": -vector,
        "0.output += 4*'The fox found' - \"Once there was a crow\"": 4 * own["The fox found"].mean(axis=0)
        - own["Once there was a crow"].mean(axis=0),
        f"0.output = mean({tmp_path}/lines.txt)": both,
        f"0.output[:,3:6] = mean({tmp_path}/lines.txt)": both[3:6],
        f"0.self_attention.context[2] = mean({tmp_path}/lines.txt)": np.concatenate(of_heads, axis=1).mean(axis=1)[2],
    }
    for text, values in wanted.items():
        (change,) = changes(model, program, [text])
        np.testing.assert_allclose(np.ravel(change.values), values, atol=1e-5)
    (mean,) = changes(model, program, ["0.output[1] = mean"])
    assert mean == Ablate(name, (range(1, 2), range(80)), mean=True)


def test_commands_compute_with_the_edits(run: Run) -> None:
    edit = ("--edit", "0.self_attention.context[2] = 0", "--edit", "0.output[1] *= 0.5")
    trace = Model.load("copy").trace(ids=[5, 6, 7, 8, 5])
    name = "decoder.0.self_attention.context"
    edited = trace.edited([Set(name, 0.0, heads=range(2, 3)), Scale("0.output", 0.5, rows=range(1, 2))])
    shown = json.loads(run("show", "output.logits", *GIVEN, *edit, "--format", "json").out)
    np.testing.assert_allclose(shown["values"], edited["output.logits"], atol=1e-5)
    run("trace", *GIVEN, *edit, "--out", "run.npz")
    np.testing.assert_allclose(np.load("run.npz")[name], edited[name], atol=1e-6)
    heads = [run("heads", *GIVEN, *more, "--format", "json").out for more in ((), edit)]
    assert heads[0] != heads[1]


def test_both_sentences_of_a_patch_are_computed_with_the_edits(run: Run) -> None:
    edit = Scale("0.self_attention.context", 0.5, heads=range(1))
    model, name = Model.load("copy"), "decoder.1.self_attention.value"
    own, other = (model.trace(ids=ids).edited([edit]) for ids in ([5, 6, 7, 8, 5], [5, 10, 7, 8, 5]))
    metric = Metric("difference", (6, 10))
    wanted = metric.measure(own.edited([Patch.between(own, other, name)]), own, range(4, 5))
    given = ("--from-ids", "5,10,7,8,5", "--tokens", "6,10", "--edit", "0.self_attention.context[0] *= 0.5")
    patched = json.loads(run("patch", name, *GIVEN, *given, "--format", "json").out)
    assert patched["value"] == pytest.approx(wanted, abs=1e-4)
    assert patched["steps"][0]["name"] == name
    each = json.loads(run("patch", "--each", "layer", *GIVEN, *given, "--format", "json").out)
    plain = json.loads(run("patch", "--each", "layer", *GIVEN, *given[:4], "--format", "json").out)
    assert each != plain


def test_the_explorer_begins_with_the_edits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def explorer(session: Session, *_: object) -> SimpleNamespace:
        begun.append(session)
        return SimpleNamespace(run=lambda: None, failure=None, return_code=0)

    monkeypatch.setattr("tui_transformer.explorer.app.ExplorerApp", explorer)
    monkeypatch.setattr("tui_transformer.cli.explore.check_terminal", lambda: None)
    assert run(*GIVEN, "--edit", "0.output[2] += 1", "--edit", "0.output[2] += 1").code == 0
    session = begun[0]
    name = session.base.program.named("0.output")
    np.testing.assert_allclose(session.trace[name][2], session.base[name][2] + 2, atol=1e-6)
    ended = run(*GIVEN, "--edit", "0.output")
    assert (ended.code, "--edit: '0.output' is no edit: write STEP = 0" in ended.err) == (2, True)
    said = run("--plain", *GIVEN, "--edit", "0.output[2] += 1").out
    assert "; edited: decoder.0.feed_forward.residual row 2 + 1; it answers" in said


def test_a_text_is_written_under_edits(run: Run) -> None:
    given = ("generate", "--model", "story", "--text", "Once there was", "--greedy", "--max-new-tokens", "6")
    edit = ("--edit", "1.output += 3*'sea' - 3*'fox'")
    plain, cached, uncached = (run(*given, *more).out for more in ((), edit, (*edit, "--no-cache")))
    assert cached == uncached != plain


def test_heads_are_set_to_the_mean_of_a_file(run: Run) -> None:
    Path("lines.txt").write_text("The fox found\nOnce there was a crow\n")
    ended = run("ablate", "--model", "story", "--mean-of", "lines.txt", "--format", "json")
    assert json.loads(ended.out)["set to"] == "its mean over lines.txt"
    zero = json.loads(run("ablate", "--model", "story", "--format", "json").out)
    assert json.loads(ended.out)["effects"] != zero["effects"]
    one = run("ablate", "head:decoder.0.self_attention:1", "--model", "story", "--mean-of", "lines.txt")
    assert one.out.startswith("head:decoder.0.self_attention:1 set to its mean over lines.txt\n")


@pytest.mark.parametrize(
    ("edit", "code", "says"),
    [
        ("0.output", 2, "write STEP = 0"),
        ("0.output = cat.npy", 1, "cat.npy"),
        ("0.output = 1 2", 2, "'2' is no value"),
        ("nothing = 1", 1, "no step is called 'nothing'"),
        ("0.output[1,2,3] = 0", 2, "has rows, columns: [1,2,3] names more"),
        ("0.output[x] = 0", 2, "'x' is no row"),
        ("0.output[9] = 0", 1, "has no rows 9 to 9: use 0 to 4"),
        ("0.output += mean", 2, "with =, and not +="),
        ("tokens = 3", 1, "holds whole numbers"),
        ("0.output /= 0", 2, "cannot be divided by 0"),
        ("0.output = 1.2.3*2", 2, "'1.2.3' is no factor"),
        ("0.output = mean(none.txt)", 1, "none.txt"),
    ],
)
def test_what_cannot_be_edited_is_one_line(run: Run, edit: str, code: int, says: str) -> None:
    run("show", "output.logits", *GIVEN, "--edit", edit).refuses(says, code=code)


def test_a_mean_over_positions_is_not_written_on_with(run: Run) -> None:
    ended = run("generate", "--model", "story", "--text", "Once", "--edit", "0.output = mean")
    assert ended.code == 1
    assert "is of one sentence" in ended.err


def test_a_trace_is_written_as_safetensors_too(run: Run) -> None:
    run("trace", *GIVEN, "--out", "run.npz", "--steps", "*.weights,tokens")
    ended = run("trace", *GIVEN, "--out", "run.safetensors", "--steps", "*.weights,tokens", "--budget", "0")
    assert "wrote run.safetensors: 3 steps" in ended.err
    one, other = dict(np.load("run.npz")), load_file("run.safetensors")
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_entropy_says_which_queries_it_leaves_out(run: Run) -> None:
    assert "(without the 2 queries that see fewer than 3 keys)" in run("heads", *GIVEN).out
    assert "without" not in run("heads", "--model", "question", "--text", "who did it ?").out
