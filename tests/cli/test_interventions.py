"""`ablate`, `patch` and `--edit`: tables of effects, and what a change gives in every command that computes."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import REFERENCES, Run, traced
from safetensors.numpy import load_file

from tui_transformer import paths
from tui_transformer.analysis.effects import effects
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.cli.terminal import CLEAR, counted
from tui_transformer.engine.changes import OPEN, Add, Scale, Set
from tui_transformer.engine.edits import Ablate, Patch
from tui_transformer.engine.targets import every, parse
from tui_transformer.model import Model
from tui_transformer.session.edit_format import changes
from tui_transformer.session.session import Session

USUAL = ("--model", "encoder")

GPT2 = str(REFERENCES / "gpt2")
HEAD = "head:encoder.0.self_attention:2"
WEIGHTS = "encoder.0.self_attention.weights"


def test_without_a_target_every_head_is_listed_by_its_effect(run: Run) -> None:
    ended = run("ablate", "--model", GPT2, "--ids", "4,5,6", "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    trace = Model.load(GPT2).trace(ids=[4, 5, 6])
    wanted = {str(target): effect for target, effect in effects(trace, every(trace.program))}
    listed = ended.json["effects"]
    assert [line["target"] for line in listed] == sorted(wanted, key=lambda target: -wanted[target].size)
    for line in listed:
        assert line["change"] == pytest.approx(wanted[line["target"]].change)
        assert line["divergence"] == pytest.approx(wanted[line["target"]].divergence)
    # the table says where the answer is read, and what it was
    ended = run("ablate", "--text", "the waves crashed", "--position", "1")
    lines = ended.out.splitlines()
    assert lines[0] == "each set to 0, alone; the answer is read at position 1, waves"
    shares = Model.load("encoder").trace("the waves crashed")["output.probabilities"][1]
    word = Model.load("encoder").word(int(shares.argmax()))
    assert lines[1] == f"most likely: {word} {100 * shares.max():.2f} %"
    assert lines[3].split("  ")[0] == "ablated"
    assert len(lines) == 4 + 8
    assert all(line.startswith("head:encoder.0.self_attention:") for line in lines[4:])


def test_where_logits_are_no_numbers_no_word_is_likely(run: Run) -> None:
    broken = ("ablate", "--model", "story", "--text", "Once", *("--edit", "embedding.output[0,:] *= 1e38") * 2)
    said = run(*broken).out + run(*broken, "layer:decoder.0").out
    assert re.search(r"most likely: no number \n(.|\n)+\n1 +no number +no number\n(.|\n)+ln p\(no number\)", said)


def test_other_kinds_are_listed_too(run: Run) -> None:
    for each, first in (("layer", "layer:decoder."), ("position", "position:")):
        ended = run("ablate", "--model", GPT2, "--ids", "4,5,6", "--each", each, "--mean", "--format", "csv")
        assert list(ended.table[0]) == ["target", "change", "divergence"]
        assert all(row["target"].startswith(first) for row in ended.table)
        sizes = [float(row["divergence"]) for row in ended.table]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) > 0
    # the neurons of one layer
    ended = run("ablate", "--each", "neuron:encoder.0.feed_forward", "--d-ff", "5", "--position", "all")
    assert ended.out.count("neuron:encoder.0.feed_forward:") == 5
    assert "positions 0 to 7" in ended.out
    # without a vocabulary head the change is relative
    ended = run("ablate", "--model", "attention")
    assert ended.out.splitlines()[-1].split() == ["head:encoder.0.self_attention:0", "1"]


def test_an_experiment_lists_the_steps_that_it_reaches_and_the_answer(run: Run) -> None:
    ended = run("ablate", HEAD, "--text", "the waves crashed", "--format", "json")
    data = ended.json
    trace = Model.load("encoder").trace("the waves crashed")
    reached = trace.program.downstream(["encoder.0.self_attention.context"])
    assert [step["name"] for step in data["steps"]] == [name for name in trace.program.by_name if name in reached]
    first = data["steps"][0]
    gap = np.abs(trace["encoder.0.self_attention.context"][2])
    assert first["largest"] == pytest.approx(float(gap.max()))
    assert first["index"][0] == 2
    (answer,) = data["answers"]
    shares = trace["output.probabilities"][2]
    assert [guess["probability"] for guess in answer["before"]] == pytest.approx(sorted(shares, reverse=True)[:5])
    assert data["change"] != 0
    # in words
    ended = run("ablate", HEAD, "layer:encoder.0", "--mean", "--position", "all")
    lines = ended.out.splitlines()
    assert lines[:2] == [
        f"{HEAD} set to its mean over the positions",
        "layer:encoder.0 set to its mean over the positions",
    ]
    assert any(line.startswith("encoder.0.feed_forward.output ") for line in lines)
    assert lines[-1].startswith("change of ln p(most likely token) ")


def test_what_is_measured_can_be_chosen(run: Run) -> None:
    given = ("--model", GPT2, "--ids", "4,5,6")
    trace = Model.load(GPT2).trace(ids=[4, 5, 6])
    data = run("ablate", *given, "--tokens", "37,39", "--format", "json").json
    assert data["metric"] == f"logit of {Model.load(GPT2).word(37)} less that of {Model.load(GPT2).word(39)}"
    before = float(trace["output.logits"][2, 37] - trace["output.logits"][2, 39])
    assert all(line["value"] - line["change"] == pytest.approx(before) for line in data["effects"])
    sizes = [abs(line["change"]) for line in data["effects"]]
    assert sizes == sorted(sizes, reverse=True)
    head = data["effects"][0]["target"]
    after = trace.edited(parse(head).edits(trace.program))["output.logits"][2]
    assert data["effects"][0]["value"] == pytest.approx(float(after[37] - after[39]), abs=1e-5)
    one = run("ablate", head, *given, "--tokens", "37,39", "--format", "json").json
    assert one["value"] == pytest.approx(data["effects"][0]["value"], abs=1e-5)
    table = run("ablate", *given, "--metric", "loss", "--format", "csv").table
    assert list(table[0]) == ["target", "value", "change"]
    # the loss is on the targets of the sentence unless others are named
    given = ("patch", "0.output", "--model", GPT2, "--ids", "4,5,6", "--from-ids", "7,5,6", "--format", "json")
    shares = Model.load(GPT2).trace(ids=[4, 5, 6])["output.probabilities"]
    usual, named = (run(*given, *more).json for more in (("--metric", "loss"), ("--targets", "5,-1,8")))
    assert usual["value"] - usual["change"] == pytest.approx(-np.log(shares[[0, 1], [5, 6]]).mean(), abs=1e-5)
    assert named["value"] - named["change"] == pytest.approx(-np.log(shares[[0, 2], [5, 8]]).mean(), abs=1e-5)
    assert "loss on 2 targets" in run("ablate", "--model", GPT2, "--ids", "4,5,6", "--metric", "loss").out
    # and it is read at all of them, wherever the answer is
    gradient = ("show", "output.logits", "--gradient", "--model", GPT2, "--ids", "4,5,6", "--format", "csv")
    assert re.fullmatch(r"loss on 2 targets [0-9.]+\n", run(*gradient, "--metric", "loss").err)
    assert "read at position 2" in run(*gradient, "--metric", "loss", "--tokens", "5").err


def test_a_mask_is_of_the_other_sentence_too_where_that_has_as_many_tokens(run: Run) -> None:
    step, model = "decoder.0.self_attention.output", Model.load(GPT2, device="cpu")
    given = ("patch", step, "--model", GPT2, "--ids", "4,5,6", "--mask", "0,1,1", "--rows", "1", "--format", "json")
    trace = model.trace(ids=[4, 5, 6], mask=[0, 1, 1])
    for ids, mask in (([7, 5, 6], [0, 1, 1]), ([7, 5], None)):
        moved = np.abs(model.trace(ids=ids, mask=mask)[step][1] - trace[step][1]).max()
        steps = run(*given, "--from-ids", ",".join(map(str, ids))).json["steps"]
        assert steps[0]["largest"] == pytest.approx(moved, rel=1e-5)


def test_a_patch_gives_the_answer_of_the_sentence_that_it_is_from(run: Run) -> None:
    ended = run("patch", WEIGHTS, "--ids", "1,2,3", "--from-ids", "1,2,3")
    assert "\n0 of 13 steps from the edit on changed\n" in ended.out
    assert "change of ln p" in ended.out
    assert ended.out.endswith("+0, divergence 0, in nats\n")
    # of the first step
    ended = run("patch", "embedding.output", "--ids", "1,2,3", "--from-ids", "4,5,6", "--format", "json")
    (answer,) = ended.json["answers"]
    other = Model.load("encoder").trace(ids=[4, 5, 6])["output.probabilities"][2]
    assert [guess["probability"] for guess in answer["after"]] == pytest.approx(sorted(other, reverse=True)[:5])


def test_only_the_rows_and_heads_that_are_named_are_patched(run: Run) -> None:
    arguments = ("--ids", "1,2,3,4", "--from-ids", "4,5,6,7", "--rows", "0,2,3", "--head", "1,5")
    ended = run("patch", WEIGHTS, *arguments, "--format", "csv")
    assert list(ended.table[0]) == ["step", "largest", "relative"]
    assert ended.table[0]["step"] == WEIGHTS
    a, b = (Model.load("encoder").trace(ids=ids)[WEIGHTS] for ids in ([1, 2, 3, 4], [4, 5, 6, 7]))
    gap = np.abs(a - b)[np.ix_([1, 5], [0, 2, 3])]
    assert float(ended.table[0]["largest"]) == pytest.approx(float(gap.max()))
    # a row of a longer sentence
    ended = run(
        "patch", "encoder.0.output", "--text", "the waves", "--from-text", "the waves crashed", "--rows", "1", code=0
    )
    assert "encoder.0.output, rows 1 from the waves crashed" in ended.out


def test_other_families_can_be_experimented_with(run: Run) -> None:
    for family in ("albert", "bart", "mixtral"):
        given = ("--model", str(REFERENCES / family), "--ids", "4,5,6")
        ended = run("ablate", *given, "--each", "layer", code=0)
        target = ended.out.splitlines()[-1].split()[0]
        assert run("ablate", target, *given).code == 0
        step = f"{target.partition(':')[2]}.output"
        ended = run("patch", step, *given, "--from-ids", "7,8,9", "--position", "all", code=0)


def test_the_budget_does_not_change_what_is_said_and_progress_is_one_line_that_goes_away(run, monkeypatch) -> None:
    for command in (("ablate",), ("ablate", HEAD, "--format", "csv")):
        assert run(*command, "--budget", "0").out == run(*command, "--budget", "1GiB").out == run(*command).out
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    assert list(counted(iter([1, 2]), ["head:a\x1b", "b"])) == [1, 2]
    lines = screen.getvalue().split(CLEAR)
    assert lines[0] == lines[-1] == ""
    assert [line[:12] for line in lines[1:-1]] == ["1 of 2  head", "2 of 2  b"]
    assert "\x1b" not in "".join(lines)
    assert "\n" not in screen.getvalue()


# The table of `patch --each`


GIVEN = ("patch", "--model", "copy", "--ids", "5,6,7,8,9", "--from-ids", "5,10,7,8,9")


def test_the_table_is_that_of_the_analysis(run: Run) -> None:
    model = Model.load("copy")
    trace, other = model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])
    for kind in ("position", "head", "layer"):
        measured = list(sweep(trace, other, table_of(trace.program, kind), Metric("difference", (11, 12)), range(4, 5)))
        rows = run(*GIVEN, "--each", kind, "--tokens", "11,12", "--format", "json").json
        assert [row["difference"] for row in rows] == [each.value for each in measured]
        assert [row["step"] for row in rows] == [each.place.step for each in measured]
    # in words, and as a heat map
    out = run(*GIVEN, "--each", "layer").out
    assert "KL divergence at position 4" in out
    assert "0 as it is" in out
    out = run(*GIVEN, "--each", "position", "--format", "svg").out
    assert out.startswith("<svg")
    assert out.count("<rect") > 15
    for ids, tokens in (("5,10", 2), ("5,10,7,8,9,6", 6)):
        says = f"the sentences have 5 and {tokens} tokens: a table of patches needs as many"
        run(*GIVEN[:-1], ids, "--each", "head").refuses(says, 1)


# Paths, patched and estimated


def test_the_table_of_paths_is_that_of_the_analysis(run: Run) -> None:
    model = Model.load("copy")
    trace, other = model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])
    metric = Metric("difference", (11, 12))
    together = ["head:0.self_attention:1", "head:0.self_attention:2"]
    measured = partial(paths, trace, other, ["feed_forward", together], ["value", "logits"], metric)
    patched, estimated = (measured(by=by).rows() for by in ("patching", "gradient"))
    given = ("--senders", f"feed_forward,{'+'.join(together)}", "--receivers", "value,logits", "--tokens", "11,12")
    rows = run(*GIVEN, *given, "--format", "json").json
    for row, true, estimate in zip(rows, patched, estimated, strict=True):
        assert (row["sender"], row["receiver"]) == (true["sender"], true["receiver"])
        assert (row["change"], row["estimate"]) == (true["change"], estimate["change"])
        assert row["share of the way"] == true["share"]
    largest = run(*GIVEN, *given, "--by", "gradient", "--top", "2", "--format", "json").json
    sizes = sorted((abs(row["change"]) for row in estimated), reverse=True)
    assert [abs(row["estimate"]) for row in largest] == sizes[:2]


def test_of_the_divergence_there_is_no_estimate(run: Run) -> None:
    ended = run(*GIVEN, "--senders", "head", "--position", "last")
    assert "estimate  " not in ended.out
    assert "no estimate: it is from the sentence itself" in ended.out + ended.err


def test_the_map_of_paths_names_them_briefly_and_says_what_there_is_not(run: Run) -> None:
    out = run(*GIVEN, "--receivers", "value", "--format", "svg").out
    for label in (">1.3 head<", ">0 feed_forward<", ">embedding<", ">0.2 value<", ">no path<"):
        assert label in out, label


# `--edit`: the same as the change in Python


EDITED = ("--model", "copy", "--ids", "5,6,7,8,5")


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
        ("0.output[:, 60:] = 1", Set, 1.0, (None, None, range(60, 64))),
        ("0.self_attention.weights[:, 1:, 2:] = 0", Set, 0.0, (None, range(1, OPEN), range(2, OPEN))),
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
    shown = run("show", "output.logits", *EDITED, *edit, "--format", "json").json
    np.testing.assert_allclose(shown["values"], edited["output.logits"], atol=1e-5)
    np.testing.assert_allclose(traced(run, "run", *EDITED, *edit)[name], edited[name], atol=1e-6)
    heads = [run("heads", *EDITED, *more, "--format", "json").out for more in ((), edit)]
    assert heads[0] != heads[1]


def test_both_sentences_of_a_patch_are_computed_with_the_edits(run: Run) -> None:
    edit = Scale("0.self_attention.context", 0.5, heads=range(1))
    model, name = Model.load("copy"), "decoder.1.self_attention.value"
    own, other = (model.trace(ids=ids).edited([edit]) for ids in ([5, 6, 7, 8, 5], [5, 10, 7, 8, 5]))
    metric = Metric("difference", (6, 10))
    wanted = metric.measure(own.edited([Patch.between(own, other, name)]), own, range(4, 5))
    given = ("--from-ids", "5,10,7,8,5", "--tokens", "6,10", "--edit", "0.self_attention.context[0] *= 0.5")
    patched = run("patch", name, *EDITED, *given, "--format", "json").json
    assert patched["value"] == pytest.approx(wanted, abs=1e-4)
    assert patched["steps"][0]["name"] == name
    each = run("patch", "--each", "layer", *EDITED, *given, "--format", "json").json
    plain = run("patch", "--each", "layer", *EDITED, *given[:4], "--format", "json").json
    assert each != plain


def test_the_explorer_begins_with_the_edits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def explorer(session: Session, *_: object, **__: object) -> SimpleNamespace:
        begun.append(session)
        return SimpleNamespace(run=lambda: None, failure=None, return_code=0)

    monkeypatch.setattr("tui_transformer.explorer.app.ExplorerApp", explorer)
    monkeypatch.setattr("tui_transformer.cli.explore.check_terminal", lambda: None)
    assert run(*EDITED, "--edit", "0.output[2] += 1", "--edit", "0.output[2] += 1").code == 0
    session = begun[0]
    name = session.base.program.named("0.output")
    np.testing.assert_allclose(session.trace[name][2], session.base[name][2] + 2, atol=1e-6)
    assert "--edit: '0.output' is no edit: write STEP = 0" in run(*EDITED, "--edit", "0.output", code=2).err
    said = run("--plain", *EDITED, "--edit", "0.output[2] += 1").out
    assert "; edited: decoder.0.feed_forward.residual row 2 + 1; it answers" in said


def test_what_lies_along_a_vector_is_taken_out_where_a_text_is_written_too(run: Run, tmp_path: Path) -> None:
    model = Model.load("story", device="cpu")
    trace, vector = model.trace("The fox found"), np.arange(80.0) - 3
    np.save(tmp_path / "v.npy", vector)
    row, unit = trace["0.output"][1].astype(np.float64), vector / np.linalg.norm(vector)
    (change,) = changes(model, trace.program, [f"0.output[1] -= along(3*{tmp_path}/v.npy)"])
    np.testing.assert_allclose(trace.edited([change])["0.output"][1], row - (row @ unit) * unit, atol=1e-5)
    (text,) = changes(model, trace.program, ["0.output -= along('The fox' - 'A crow')"])
    wanted = (model.trace(each)["0.output"].astype(np.float64).mean(axis=0) for each in ("The fox", "A crow"))
    np.testing.assert_allclose(text.values[0], np.subtract(*wanted), atol=1e-5)
    given = ("generate", "--text", "Once there was", "--greedy", "--max-new-tokens", "20")
    edit = ("--edit", "0.output -= along('The fox' - 'A crow')")
    plain, cached, uncached = (run(*given, *more).out for more in ((), edit, (*edit, "--no-cache")))
    assert cached == uncached != plain
    for edit, said in (
        ("0.output = along(v.npy)", "taken out with -="),
        ("0.output -= along(3)", "direction is a vector"),
    ):
        assert said in run(*given, "--edit", edit).err


def test_heads_are_set_to_the_mean_of_a_file(run: Run) -> None:
    Path("lines.txt").write_text("The fox found\nOnce there was a crow\n")
    ended = run("ablate", "--model", "story", "--mean-of", "lines.txt", "--format", "json")
    assert ended.json["set to"] == "its mean over lines.txt"
    zero = run("ablate", "--model", "story", "--format", "json").json
    assert ended.json["effects"] != zero["effects"]
    one = run("ablate", "head:decoder.0.self_attention:1", "--model", "story", "--mean-of", "lines.txt")
    assert one.out.startswith("head:decoder.0.self_attention:1 set to its mean over lines.txt\n")


def test_a_trace_is_written_as_safetensors_too_and_entropy_says_what_it_leaves_out(run: Run) -> None:
    one = traced(run, "run", *EDITED, "--steps", "*.weights,tokens")
    ended = run("trace", *EDITED, "--out", "run.safetensors", "--steps", "*.weights,tokens", "--budget", "0")
    assert "wrote run.safetensors: 3 steps" in ended.err
    other = load_file("run.safetensors")
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert "(without the 2 queries that see fewer than 3 keys)" in run("heads", *EDITED).out
    assert "without" not in run("heads", "--model", "question", "--text", "who did it ?").out
