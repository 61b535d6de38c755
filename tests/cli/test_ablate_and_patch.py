"""`ablate` and `patch`: tables of effects, what an edit changes, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run
from safetensors.numpy import load_file, save_file

from tui_transformer.analysis.effects import effects
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.cli.terminal import CLEAR, counted
from tui_transformer.engine.targets import every, parse
from tui_transformer.model import Model

USUAL = ("--model", "encoder")

GPT2 = str(REFERENCES / "gpt2")
HEAD = "head:encoder.0.self_attention:2"
WEIGHTS = "encoder.0.self_attention.weights"
FAMILIES = sorted(path.name for path in REFERENCES.iterdir())


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_without_a_target_every_head_is_listed_by_its_effect(run: Run) -> None:
    ended = run("ablate", "--model", GPT2, "--ids", "4,5,6", "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    trace = Model.load(GPT2).trace(ids=[4, 5, 6])
    wanted = {str(target): effect for target, effect in effects(trace, every(trace.program))}
    listed = json.loads(ended.out)["effects"]
    assert [line["target"] for line in listed] == sorted(wanted, key=lambda target: -wanted[target].size)
    for line in listed:
        assert line["change"] == pytest.approx(wanted[line["target"]].change)
        assert line["divergence"] == pytest.approx(wanted[line["target"]].divergence)


def test_the_table_says_where_the_answer_is_read_and_what_it_was(run: Run) -> None:
    ended = run("ablate", "--text", "the waves crashed", "--position", "1")
    lines = ended.out.splitlines()
    assert lines[0] == "each set to 0, alone; the answer is read at position 1, waves"
    shares = Model.load("encoder").trace("the waves crashed")["output.probabilities"][1]
    word = Model.load("encoder").word(int(shares.argmax()))
    assert lines[1] == f"most likely: {word} {100 * shares.max():.2f} %"
    assert lines[3].split("  ")[0] == "ablated"
    assert len(lines) == 4 + 8
    assert all(line.startswith("head:encoder.0.self_attention:") for line in lines[4:])


@pytest.mark.parametrize(("each", "first"), [("layer", "layer:decoder."), ("position", "position:")])
def test_other_kinds_are_listed_as_csv(run: Run, each: str, first: str) -> None:
    ended = run("ablate", "--model", GPT2, "--ids", "4,5,6", "--each", each, "--mean", "--format", "csv")
    rows = rows_of(ended.out)
    assert rows[0] == ["target", "change", "divergence"]
    assert all(row[0].startswith(first) for row in rows[1:])
    sizes = [float(row[2]) for row in rows[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) > 0


def test_the_neurons_of_one_layer_are_listed(run: Run) -> None:
    ended = run("ablate", "--each", "neuron:encoder.0.feed_forward", "--d-ff", "5", "--position", "all")
    assert ended.out.count("neuron:encoder.0.feed_forward:") == 5
    assert "positions 0 to 7" in ended.out


def test_a_model_without_a_vocabulary_head_has_a_relative_change(run: Run) -> None:
    ended = run("ablate", "--model", "attention")
    assert ended.out.splitlines()[-1].split() == ["head:encoder.0.self_attention:0", "1"]


def test_an_experiment_lists_the_steps_that_it_reaches_and_the_answer(run: Run) -> None:
    ended = run("ablate", HEAD, "--text", "the waves crashed", "--format", "json")
    data = json.loads(ended.out)
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


def test_an_experiment_in_words(run: Run) -> None:
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
    data = json.loads(run("ablate", *given, "--tokens", "37,39", "--format", "json").out)
    assert data["metric"] == f"logit of {Model.load(GPT2).word(37)} less that of {Model.load(GPT2).word(39)}"
    before = float(trace["output.logits"][2, 37] - trace["output.logits"][2, 39])
    assert all(line["value"] - line["change"] == pytest.approx(before) for line in data["effects"])
    sizes = [abs(line["change"]) for line in data["effects"]]
    assert sizes == sorted(sizes, reverse=True)
    head = data["effects"][0]["target"]
    after = trace.edited(parse(head).edits(trace.program))["output.logits"][2]
    assert data["effects"][0]["value"] == pytest.approx(float(after[37] - after[39]), abs=1e-5)
    one = json.loads(run("ablate", head, *given, "--tokens", "37,39", "--format", "json").out)
    assert one["value"] == pytest.approx(data["effects"][0]["value"], abs=1e-5)
    assert rows_of(run("ablate", *given, "--metric", "loss", "--format", "csv").out)[0] == ["target", "value", "change"]


def test_the_loss_is_on_the_targets_of_the_sentence_unless_others_are_named(run: Run) -> None:
    given = ("patch", "0.output", "--model", GPT2, "--ids", "4,5,6", "--from-ids", "7,5,6", "--format", "json")
    shares = Model.load(GPT2).trace(ids=[4, 5, 6])["output.probabilities"]
    usual, named = (json.loads(run(*given, *more).out) for more in (("--metric", "loss"), ("--targets", "5,-1,8")))
    assert usual["value"] - usual["change"] == pytest.approx(-np.log(shares[[0, 1], [5, 6]]).mean(), abs=1e-5)
    assert named["value"] - named["change"] == pytest.approx(-np.log(shares[[0, 2], [5, 8]]).mean(), abs=1e-5)
    assert "loss on 2 targets" in run("ablate", "--model", GPT2, "--ids", "4,5,6", "--metric", "loss").out


def test_a_patch_from_the_same_sentence_changes_nothing(run: Run) -> None:
    ended = run("patch", WEIGHTS, "--ids", "1,2,3", "--from-ids", "1,2,3")
    assert "\n0 of 13 steps from the edit on changed\n" in ended.out
    assert "change of ln p" in ended.out
    assert ended.out.endswith("+0, divergence 0, in nats\n")


def test_patching_the_first_step_gives_the_answer_of_the_other_sentence(run: Run) -> None:
    ended = run("patch", "embedding.output", "--ids", "1,2,3", "--from-ids", "4,5,6", "--format", "json")
    (answer,) = json.loads(ended.out)["answers"]
    other = Model.load("encoder").trace(ids=[4, 5, 6])["output.probabilities"][2]
    assert [guess["probability"] for guess in answer["after"]] == pytest.approx(sorted(other, reverse=True)[:5])


def test_only_the_rows_and_heads_that_are_named_are_patched(run: Run) -> None:
    arguments = ("--ids", "1,2,3,4", "--from-ids", "4,5,6,7", "--rows", "0,2,3", "--head", "1,5")
    ended = run("patch", WEIGHTS, *arguments, "--format", "csv")
    assert rows_of(ended.out)[0] == ["step", "largest", "relative"]
    assert rows_of(ended.out)[1][0] == WEIGHTS
    a, b = (Model.load("encoder").trace(ids=ids)[WEIGHTS] for ids in ([1, 2, 3, 4], [4, 5, 6, 7]))
    gap = np.abs(a - b)[np.ix_([1, 5], [0, 2, 3])]
    assert float(rows_of(ended.out)[1][1]) == pytest.approx(float(gap.max()))


def test_a_row_of_a_longer_sentence_is_patched(run: Run) -> None:
    ended = run("patch", "encoder.0.output", "--text", "the waves", "--from-text", "the waves crashed", "--rows", "1")
    assert ended.code == 0
    assert "encoder.0.output, rows 1 from the waves crashed" in ended.out


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_experimented_with(run: Run, family: str) -> None:
    given = ("--model", str(REFERENCES / family), "--ids", "4,5,6")
    ended = run("ablate", *given, "--each", "layer")
    assert ended.code == 0, ended.err
    target = ended.out.splitlines()[-1].split()[0]
    assert run("ablate", target, *given).code == 0
    step = f"{target.partition(':')[2]}.output"
    ended = run("patch", step, *given, "--from-ids", "7,8,9", "--position", "all")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("budget", ["0", "1GiB"])
def test_the_budget_does_not_change_what_is_said(run: Run, budget: str) -> None:
    outputs = [run(*command, "--budget", budget).out for command in (("ablate",), ("ablate", HEAD, "--format", "csv"))]
    wanted = [run(*command).out for command in (("ablate",), ("ablate", HEAD, "--format", "csv"))]
    assert outputs == wanted


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    assert list(counted(iter([1, 2]), ["head:a\x1b", "b"])) == [1, 2]
    lines = screen.getvalue().split(CLEAR)
    assert lines[0] == lines[-1] == ""
    assert [line[:12] for line in lines[1:-1]] == ["1 of 2  head", "2 of 2  b"]
    assert "\x1b" not in "".join(lines)
    assert "\n" not in screen.getvalue()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("ablate", "head:encoder.0.self_attention:9"), 1, "has no head 9: use 0 to 7"),
        (("ablate", "nosuch:1"), 1, "'nosuch' is not a head"),
        (("ablate", "--each", "nosuch"), 1, "'nosuch' is not a head"),
        (("ablate", "--each", "layer", "--model", "attention"), 1, "the model has no layers that can be ablated"),
        (("ablate", "--position", "8"), 1, "there is no position 8: use 0 to 7"),
        (("ablate", "--position", "x"), 2, "--position 'x'"),
        (("ablate", "--metric", "logit"), 2, "about 1 tokens, not 0"),
        (("ablate", "--tokens", "1,2,3"), 2, "give a token, or two"),
        (("ablate", "--targets", "1,2"), 1, "2 targets for 8 positions"),
        (("ablate", "--model", "attention", "--tokens", "1"), 1, "the model has no logits of words"),
        (("ablate", HEAD, "--each", "head"), 2, "either WHAT or --each"),
        (("patch", WEIGHTS), 2, "--from-text or --from-ids"),
        (("patch", WEIGHTS, "--from-ids", "1", "--from-text", "the"), 2, "--from-text or --from-ids"),
        (("patch", WEIGHTS, "--from-ids", "x"), 2, "--from-ids: 'x'"),
        (("patch", WEIGHTS, "--from-ids", "1"), 1, "the last axis differs"),
        (("patch", "tokens", "--from-ids", "1"), 1, "tokens holds whole numbers"),
        (("patch", "nosuch", "--from-ids", "1"), 1, "no step is called 'nosuch'"),
        (("patch", "*.weights", "--from-ids", "1", "--layers", "2"), 2, "2 steps match"),
        (("patch", "encoder.0.output", "--from-ids", "1"), 1, "name rows that both have"),
        (("patch", "encoder.0.output", "--from-ids", "1", "--rows", "-1"), 2, "--rows: '-1'"),
        (("patch", "encoder.0.output", "--from-ids", "1", "--rows", "3"), 1, "has no row 3 in both: use 0 to 0"),
        (("patch", "encoder.0.output", "--from-ids", "1", "--rows", "0", "--head", "0"), 1, "has no heads"),
        (("patch", WEIGHTS, "--from-text", "a", "--model", "attention"), 1, "attention reads no tokens"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, arguments: tuple[str, ...], code: int, says: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_answers_that_overflow_are_null_in_json(run: Run, tmp_path: Path) -> None:
    weights = {name: array * np.float32(1e30) for name, array in load_file(f"{GPT2}/model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors")
    shutil.copy(f"{GPT2}/config.json", tmp_path)
    ended = run("ablate", "--model", ".", "--ids", "4,5,6", "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    before = json.loads(ended.out)["answers"][0]["before"]
    assert [guess["probability"] for guess in before] == [None] * len(before)


# The table of `patch --each`


GIVEN = ("patch", "--model", "copy", "--ids", "5,6,7,8,9", "--from-ids", "5,10,7,8,9")


@pytest.mark.parametrize("kind", ["position", "head", "layer"])
def test_the_table_is_that_of_the_analysis(run: Run, kind: str) -> None:
    model = Model.load("copy")
    trace, other = model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])
    measured = list(sweep(trace, other, table_of(trace.program, kind), Metric("difference", (11, 12)), range(4, 5)))
    rows = json.loads(run(*GIVEN, "--each", kind, "--tokens", "11,12", "--format", "json").out)
    assert [row["difference"] for row in rows] == [each.value for each in measured]
    assert [row["step"] for row in rows] == [each.place.step for each in measured]


def test_text_says_what_is_measured_and_of_what(run: Run) -> None:
    out = run(*GIVEN, "--each", "layer").out
    assert "KL divergence at position 4" in out
    assert "0 as it is" in out


def test_svg_is_a_heat_map(run: Run) -> None:
    out = run(*GIVEN, "--each", "position", "--format", "svg").out
    assert out.startswith("<svg")
    assert out.count("<rect") > 15


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--each", "head", "--head", "1"), 2, "--each names the places itself"),
        (("weights", "--each", "head"), 2, "leave out STEP"),
        ((), 2, "name a step, or a table with --each"),
        (("0.self_attention.weights", "--format", "svg"), 2, "svg is a format of --each"),
        (("--each", "head", "--tokens", "1,2,3"), 2, "give a token, or two"),
        (("--each", "head", "--metric", "difference"), 2, "about 2 tokens, not 0"),
        (("--each", "layer", "--tokens", "nothing"), 1, "is no word of the vocabulary"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run: Run, more: tuple[str, ...], code: int, says: str) -> None:
    run(*GIVEN, *more).refuses(says, code=code)
