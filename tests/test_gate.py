"""The gate of visitors: what they open and write lies below one folder, whichever way they ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

from tui_transformer import gate
from tui_transformer.course.running import Limits, run_command, run_python
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell import user_files as outlet
from tui_transformer.explorer.tools.checkpoints import Checkpoints
from tui_transformer.explorer.tools.compare import _of_checkpoint
from tui_transformer.explorer.tools.runs import path_of, runs_here
from tui_transformer.explorer.tools.settings import build, values_of
from tui_transformer.explorer.tools.train.plan import FILE, TEXTS, plan
from tui_transformer.files import expanded, is_file, own_folders, write_whole
from tui_transformer.guide.lecture import check_name, lecture, read_lecture
from tui_transformer.model.local_models import TRAINED, find_model, local_models
from tui_transformer.model.options import ModelOptions
from tui_transformer.report.export import check_suffix
from tui_transformer.session.edit_format import changes
from tui_transformer.session.open_session import open_session
from tui_transformer.session.overlay import of_dump
from tui_transformer.session.session import Session
from tui_transformer.survey.results import read_results
from tui_transformer.text.dispatch import load_vocabulary

REFUSED = "visitors (open|write)"


@pytest.fixture
def session() -> Session:
    """What is served: random weights, so that a vocabulary can be chosen."""
    return open_session(ModelOptions("encoder", sizes={"d_model": 8, "heads": 2, "layers": 1}), "waves crashed")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session) -> Path:
    """The folder of visitors, beside files that are none of theirs; the gate is closed."""
    folder, own, outside = (tmp_path / name for name in ("files", "own", "outside"))
    for each in (folder, own, outside):
        each.mkdir()
    for each in (folder, outside):
        (each / "words.txt").write_text("waves crashed shore\n", encoding="utf-8")
        np.save(each / "vector.npy", np.zeros(8, np.float32))
    (folder / "link.txt").symlink_to(outside / "words.txt")
    (folder / "below").symlink_to(outside)
    monkeypatch.setattr(gate, "_closed", [gate.Gate(folder, own, system=tuple(gate._system()))])
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.chdir(outside)
    return folder


def test_no_way_out_of_the_folder_leads_anywhere(served: Path) -> None:
    for way in ("../outside/words.txt", "~/words.txt", "below/words.txt", "./below/../below/words.txt", "/etc/passwd"):
        path = served / Path(way).expanduser()
        for refused in (expanded, load_vocabulary, lambda _, path=path: write_whole(path, b"")):
            with pytest.raises(InputError, match=REFUSED):
                refused(way)
        assert not is_file(path)


def test_names_are_of_files_in_the_folder_and_a_link_that_leads_out_is_refused(served: Path) -> None:
    assert load_vocabulary("words.txt").path == served / "words.txt"
    assert expanded("new/run") == served / "new" / "run"
    write_whole(expanded("new.txt"), b"mine")
    assert (served / "new.txt").read_bytes() == b"mine"
    refuses(REFUSED, lambda: load_vocabulary("link.txt"))


def train(values: dict[str, str]) -> Callable[[Session, str], object]:
    def begin(_: Session, where: str) -> object:
        usual = {**TEXTS[FILE].values, "text": FILE, "file": "words.txt", "folder": "run"}
        return plan({**usual, **{key: value.format(where=where) for key, value in values.items()}})

    return begin


OPENED: dict[str, Callable[[Session, str], object]] = {
    "a model": lambda _, where: open_session(ModelOptions(where), None, None),
    "a vocabulary": lambda session, where: session.with_vocabulary(where),
    "the vocabulary of the settings": lambda session, where: build(
        session.model, {**values_of(session.model), "vocabulary": FILE_OF_SETTINGS, "file": where}
    ),
    "a dump": lambda session, where: of_dump(session, where),
    "another checkpoint": lambda session, where: _of_checkpoint(session, where),
    "a survey": lambda _, where: read_results(path_of(where)),
    "checkpoints of a run": lambda _, where: Checkpoints.of(path_of(where)),
    "a vector of an edit": lambda session, where: changes(
        session.model, session.trace.program, [f"encoder.0.output += 2*{where}"]
    ),
    "texts of an edit": lambda session, where: changes(
        session.model, session.trace.program, [f"encoder.0.output = mean({where})"]
    ),
    "a folder to train in": train({"folder": "{where}"}),
    "a text to train on": train({"file": "{where}"}),
    "an export": lambda _, where: outlet.path_of(where),
    "word vectors": lambda _, where: ModelOptions("encoder", vectors=where).load(),
}
FILE_OF_SETTINGS = "file"


@pytest.mark.parametrize("what", OPENED)
def test_every_way_to_open_or_write_goes_through_the_gate(served, session, what, monkeypatch):
    name = "vector.npy" if "vector" in what or "dump" in what else "words.txt"
    for where in (str(served.parent / "outside" / name), f"../outside/{name}", f"below/{name}"):
        with pytest.raises(InputError, match=REFUSED):
            OPENED[what](session, where)
    # without a folder nothing is opened
    monkeypatch.setattr(gate, "_closed", [gate.Gate(None, served.parent / "own", system=tuple(gate._system()))])
    for where in ("words.txt", str(served / "vector.npy")) if what != "an export" else ():
        with pytest.raises(InputError, match="as it is served without --files"):
            OPENED[what](session, where)


def test_without_a_folder_an_export_is_kept_for_a_download(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = served.parent / "own"
    monkeypatch.setattr(gate, "_closed", [gate.Gate(None, own)])
    for name in ("a.csv", "../../a.csv", "/etc/a.csv", "~/a.csv"):
        assert outlet.path_of(name) == own / "downloads" / "a.csv"
    assert outlet.path_of('x";\r\n.csv').name == "x____.csv"
    refuses("name", lambda: outlet.path_of(" "))
    # what is wrong with it is said by its name, and not by where it is kept
    write_whole(outlet.path_of("text.toml"), b"once upon a time")
    for wrong in (check_suffix, check_name, read_lecture, lambda path: write_whole(path / "below", b"")):
        with pytest.raises(InputError) as caught:
            wrong(outlet.path_of("/etc/text.csv" if wrong is check_name else "/etc/text.toml"))
        assert "text." in str(caught.value) or "below" in str(caught.value)
        assert str(own) not in str(caught.value)
        assert "/etc" not in str(caught.value)


def test_no_code_is_run_for_a_visitor_and_that_names_what_was_typed(served: Path) -> None:
    (served / "answer.py").write_text("def scores(query, key): ...", encoding="utf-8")
    with pytest.raises(InputError, match=f"^{served / 'answer.py'}: visitors run no code here$"):
        run_python(expanded("answer.py"), ["scores"], {}, ["scaled"], Limits())
    refuses(r"^cc: visitors run no code here$", lambda: run_command(["cc", "answer.c"], {}, Limits()))


def test_models_and_runs_are_those_of_the_folder_and_models_that_come_with_the_program(served: Path) -> None:
    assert find_model("question") is not None
    assert {each.source for each in local_models()} == {"trained"}
    assert find_model("org/name") is None
    assert find_model("numpy") is None
    refuses(REFUSED, lambda: find_model("../outside"))
    # a checkpoint in the folder is offered and opened
    shutil.copytree(TRAINED / "copy", served / "mine")
    assert [each.name for each in local_models() if each.source == "folder"] == ["mine"]
    found = find_model("mine")
    assert found is not None
    assert found.folder == served / "mine"
    # runs
    for folder, name in ((served, "mine"), (served.parent / "outside", "theirs")):
        state = folder / "runs" / name / "checkpoints" / "000001" / "state.json"
        state.parent.mkdir(parents=True)
        state.write_text("{}", encoding="utf-8")
    assert runs_here() == ["runs/mine"]


def test_what_is_served_is_read_wherever_it_is_and_not_what_lies_beside_it(served, monkeypatch):
    given = served.parent / "outside" / "words.txt"
    closed = gate.Gate(served, served.parent / "own", (given,), (), tuple(gate._system()))
    monkeypatch.setattr(gate, "_closed", [closed])
    assert load_vocabulary(str(given)).size > 0
    refuses(REFUSED, lambda: load_vocabulary(str(given.with_name("vector.npy"))))
    refuses(REFUSED, lambda: write_whole(given, b""))


def test_a_lecture_is_read_by_name_and_what_is_remembered_is_the_visitors_own(served: Path) -> None:
    assert lecture("question").stops
    refuses(REFUSED, lambda: lecture(str(served.parent / "outside" / "lecture.toml")))
    assert all(folder.is_relative_to(served.parent / "own") for folder in own_folders())


SCRIPT = """
import os, subprocess, sys, shutil
from pathlib import Path
from tui_transformer import gate
from tui_transformer.files import remove_folder
gate.confine([Path(sys.argv[1])])
inside, outside = Path(sys.argv[2]), Path(sys.argv[3])
def does(what):
    try:
        what()
    except PermissionError as error:
        return f"no: {error}"
    return "yes"
words = outside / "words.txt"
CASES = {
    "read outside": lambda: words.read_bytes(),
    "read through a link": lambda: (inside / "link").read_bytes(),
    "open a descriptor": lambda: os.open(words, os.O_RDONLY),
    "read as bytes": lambda: open(os.fsencode(words)),
    "list outside": lambda: os.listdir(outside),
    "scan outside": lambda: list(os.scandir(outside)),
    "list here": lambda: os.listdir(),
    "write outside": lambda: (outside / "new").write_bytes(b""),
    "append outside": lambda: words.open("ab"),
    "make a folder": lambda: (outside / "new").mkdir(),
    "remove": lambda: words.unlink(),
    "rename out": lambda: (inside / "mine").rename(outside / "mine"),
    "rename in": lambda: words.rename(inside / "theirs"),
    "link to it": lambda: os.link(words, inside / "hard"),
    "run a program": lambda: subprocess.run(["true"]),
    "run a shell": lambda: os.system("true"),
    "run Python": lambda: subprocess.run([*gate.GUARDED[:-1], "-c", "pass"]),
    "hold a tokenizer": lambda: subprocess.run([*gate.GUARDED, "0"], stdin=subprocess.DEVNULL, check=True),
    "read the given": lambda: Path(sys.argv[1]).read_bytes(),
    "write inside": lambda: (inside / "new").write_bytes(b"1"),
    "import": lambda: __import__("colorsys"),
    "remove inside": lambda: ((inside / "a" / "b").mkdir(parents=True), remove_folder(inside / "a")),
    "write the given": lambda: Path(sys.argv[1]).write_bytes(b""),
}
for name, what in CASES.items():
    print(f"{name} = {does(what)}")
"""
ALLOWED = {"hold a tokenizer", "read the given", "write inside", "import", "remove inside"}


def test_python_itself_asks_the_gate(tmp_path: Path) -> None:
    """Whatever function opens a file, without anybody thinking of visitors."""
    inside, outside, own = (tmp_path / name for name in ("inside", "outside", "own"))
    for each in (inside, outside, own):
        each.mkdir()
    (outside / "words.txt").write_text("secret", encoding="utf-8")
    (inside / "mine").write_text("mine", encoding="utf-8")
    (inside / "link").symlink_to(outside / "words.txt")
    given = tmp_path / "given"
    given.write_text("given", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(given), str(inside), str(outside)],
        env={**os.environ, gate.VARIABLE: gate.described(inside, own)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    said = dict(line.split(" = ", 1) for line in done.stdout.splitlines())
    assert len(said) == 23
    assert {name for name, answer in said.items() if answer == "yes"} == ALLOWED
    assert (outside / "words.txt").read_text(encoding="utf-8") == "secret"
    assert [each.name for each in outside.iterdir()] == ["words.txt"]


def test_a_session_that_is_told_no_folder_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gate.VARIABLE, "/nowhere/at/all\n")
    refuses("temporary folder", lambda: gate.confine([]))
    assert gate.gate() is None


def test_links_in_what_is_given_are_followed(tmp_path: Path) -> None:
    """As in the cache of Hugging Face, where a snapshot is links to files beside it."""
    blob, snapshot = tmp_path / "blobs" / "abc", tmp_path / "snapshots"
    blob.parent.mkdir()
    snapshot.mkdir()
    blob.write_bytes(b"weights")
    (snapshot / "model.safetensors").symlink_to(blob)
    closed = gate.Gate(None, tmp_path / "own", tuple(gate._with_links([snapshot])))
    assert closed.reads(snapshot / "model.safetensors")
    assert not closed.reads(blob.with_name("other"))
