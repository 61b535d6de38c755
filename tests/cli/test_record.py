"""`record`: every stop of a lecture as pictures."""

import signal
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

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
    ended = run("record", "mine.toml", "--model", "question", "--out", "pictures", "--size", "100x30")
    assert ended.code == 0, ended.err
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["01-first-one.png", "01-first-one.svg", "02-second.png", "02-second.svg"]
    first, second = (
        "".join(ET.parse(tmp_path / "pictures" / name).getroot().itertext())  # noqa: S314 - of our own pictures
        for name in names[1::2]
    )
    plain = first.replace("\xa0", " ")
    assert "They sum to 1." in plain
    assert "Why?" in plain
    assert "notes: Ask first." in plain
    assert "1 of 2" in plain
    assert "head 2 of encoder.0.self_attention → 0" in second.replace("\xa0", " ")
    assert (tmp_path / "pictures" / "01-first-one.png").read_bytes().startswith(b"\x89PNG")
    assert "http" not in (tmp_path / "pictures" / "01-first-one.svg").read_text().replace("http://www.w3.org", "")


def test_without_the_library_svg_alone_is_written(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (tmp_path / "mine.toml").write_text('[a]\ntitle = "A"\ntext = "a"\nstep = "tokens"\n')
    ended = run("record", "mine.toml", "--model", "question", "--out", "pictures", "--size", "40x12")
    assert ended.code == 0
    assert "pip install 'tui-transformer[record]'" in ended.err
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["01-a.svg"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nothing.toml",), "nothing.toml"),
        (("nothing",), "no tour is named"),
        (("dates", "--model", "question"), "leave out --model"),
        (("question", "--size", "10x5"), "is not COLUMNSxLINES"),
        (("question", "--size", "9999x9999"), "is not COLUMNSxLINES"),
        (("question", "--theme", "x"), "no theme is called"),
    ],
)
def test_what_cannot_be_recorded_is_said_and_nothing_is_written(run, tmp_path, arguments, says):
    ended = run("record", *arguments, "--out", "pictures")
    assert ended.code in (1, 2)
    assert says in ended.err
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(number, tmp_path):
    command = [sys.executable, "-m", "tui_transformer", "record", "question", "--out", str(tmp_path / "pictures")]
    command += ["--size", "60x20"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "wrote" in process.stderr.readline()
        process.send_signal(number)
        try:
            assert process.wait(60) == 128 + number
        finally:
            process.kill()
        assert "crash" not in process.stderr.read()
