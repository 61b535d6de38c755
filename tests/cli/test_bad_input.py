from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

USUAL = ("--model", "encoder")

FAILS = {
    "unknown step": ("show", "nosuch"),
    "ambiguous step": ("show", "output"),
    "no such head": ("show", "weights", "--head", "8"),
    "negative head": ("show", "weights", "--head", "-1"),
    "no such cell": ("show", "weights", "--explain", "8,0"),
    "ID outside the vocabulary": ("show", "--ids", "1,99"),
    "negative ID": ("show", "--ids=-1"),
    "no words": ("show", "--text", ""),
    "too many words": ("show", "--text", "the " * 100_000),
    "longer than the model reads": ("show", "--max-length", "4"),
    "unknown model": ("show", "--model", "nosuch"),
    "folder without a model": ("show", "--model", "."),
    "unknown vocabulary": ("show", "--vocab", "nosuch"),
    "vocabulary is a device": ("show", "--vocab", "/dev/zero"),
    "text for a model without words": ("show", "--model", "attention", "--text", "a"),
    "second sentence for a model that reads one": ("show", "--decoder-text", "the waves"),
    "second IDs for a model that reads one": ("show", "--model", "decoder", "--decoder-ids", "1"),
    "second sentence for a model without words": ("show", "--model", "attention", "--decoder-text", "a"),
    "decoder ID outside the vocabulary": ("show", "--model", "encoder-decoder", "--decoder-ids", "0,99"),
    "too many words for the decoder": ("show", "--model", "encoder-decoder", "--decoder-text", "the " * 100_000),
    "too large for the memory": ("show", "--d-model", "16000000", "--heads", "1"),
    "trace of no step": ("trace", "--out", "a.npz", "--steps", "nosuch*"),
    "trace into a missing folder": ("trace", "--out", "missing/a.npz"),
    "trace into a folder": ("trace", "--out", "."),
    "trace onto a full disk": ("trace", "--out", "/dev/full"),
    "step into a missing folder": ("show", "weights", "--out", "missing/a.csv"),
    "step onto a full disk": ("show", "weights", "--format", "csv", "--out", "/dev/full"),
    "unknown suffix": ("show", "weights", "--out", "a.png"),
    "figure of a large matrix": ("show", "weights", "--format", "svg", "--text", "the " * 300),
    "diff of a missing file": ("diff", "missing.npz"),
    "diff of a name that no file has": ("diff", "a" * 300),
    "log of a name that no file has": (
        *("train", "--recipe", "copy", "--out", "run"),
        *("--log", "a" * 300 + ".csv"),
    ),
    "log in a missing folder": ("train", "--recipe", "copy", "--out", "run", "--log", "missing/a.csv"),
    "text of a name that no file has": ("vocab", "build", "a" * 300),
    "training on a device": ("train", "/dev/zero", "--task", "next-word", "--out", "run"),
    "vocabulary file is missing": ("vocab", "check", "missing.txt"),
    "ID past the vocabulary": ("vocab", "show", "waves", "--from", "99"),
    "word not found": ("vocab", "search", "zzz"),
    "no tokens": ("vocab", "tokens", " "),
}
WRONG_USAGE = {
    "IDs that are no numbers": (("show", "--ids", "4,x"), "'x'"),
    "no IDs": (("show", "--ids", ""), "--ids"),
    "text and IDs": (("show", "--text", "a", "--ids", "1"), "--ids"),
    "decoder IDs that are no numbers": (("show", "--decoder-ids", "4,x"), "--decoder-ids: 'x'"),
    "no decoder IDs": (("trace", "--out", "a.npz", "--decoder-ids", ","), "--decoder-ids"),
    "decoder text and IDs": (("diff", "encoder-decoder", "--decoder-text", "a", "--decoder-ids", "1"), "--decoder-ids"),
    "no decoder layers": (("show", "--model", "encoder-decoder", "--decoder-layers", "0"), "decoder_layers"),
    "decoder layers of an encoder": (("show", "--decoder-layers", "2"), "decoder_layers"),
    "no layers": (("show", "--layers", "0"), "layers"),
    "too many layers": (("show", "--layers", "16000000"), "layers"),
    "negative width": (("show", "--d-model", "-8"), "d_model"),
    "heads do not divide the width": (("show", "--heads", "3"), "heads"),
    "negative seed": (("show", "--seed", "-1"), "seed"),
    "sizes of a model that has its own": (("show", "--model", "attention", "--layers", "2"), "layers"),
    "budget that is no amount": (("show", "--budget", "lots"), "lots"),
    "cell that is none": (("show", "weights", "--explain", "a"), "ROW,COLUMN"),
    "cell of no step": (("show", "--explain", "1,1"), "STEP"),
    "cell as a figure": (("show", "weights", "--explain", "1,1", "--format", "svg"), "svg"),
    "several steps as JSON": (("show", "*.output", "--format", "json"), "json"),
    "negative tolerance": (("diff", "a.npz", "--tolerance", "-1"), "tolerance"),
    "option before the command": (("--text", "a", "show"), "--text"),
    "decoder's option before the command": (("--decoder-text", "a", "show"), "show --decoder-text"),
    "no terminal": ((), "terminal"),
}
TYPER_FINDS = {
    "no file to write": ("trace",),
    "unknown precision": ("show", "--dtype", "float16"),
    "unknown command": ("nosuch",),
    "unknown option": ("show", "--nosuch"),
}


@pytest.mark.parametrize("arguments", FAILS.values(), ids=FAILS.keys())
def test_what_cannot_be_done_is_said_in_one_line(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 1
    _one_line(ended.err)
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "named"), WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_is_said_in_one_line(run: Run, tmp_path: Path, arguments: tuple[str, ...], named: str) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    _one_line(ended.err)
    assert named in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", TYPER_FINDS.values(), ids=TYPER_FINDS.keys())
def test_options_that_typer_refuses_exit_with_2(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert "Error" in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


def _one_line(err: str) -> None:
    assert err.startswith("tui-transformer: ")
    assert err.count("\n") == 1


def test_a_failed_write_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    old = tmp_path / "a.npz"
    old.write_bytes(b"old")
    assert run("trace", "--out", "a.npz", "--steps", "nosuch").code == 1
    assert old.read_bytes() == b"old"


def test_close_names_are_offered(run: Run) -> None:
    assert "encoder.0.self_attention.scores" in run("show", "scors").err


def test_control_characters_do_not_reach_the_terminal(run: Run) -> None:
    err = run("vocab", "check", "a\x1b[31m").err
    assert "\x1b" not in err


@pytest.mark.parametrize("arguments", [("\x1b[31m\u202e",), ("--\x1b[31m\u202e",), ("vocab", "list", "\x1b[31m\u202e")])
def test_arguments_that_typer_refuses_are_quoted_harmlessly(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert "Error" in ended.err
    assert not {"\x1b", "\u202e"} & set(ended.err)


def _zip_of(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def _npy(array: np.ndarray, *, pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=pickle)
    return buffer.getvalue()


SMALL = _npy(np.zeros((2, 2), dtype=np.float32))
HUGE_HEADER = SMALL.replace(b"(2, 2), }         ", b"(9999999, 9999), }")
BROKEN = {
    "text": b"not a zip file",
    "empty": b"",
    "zip without arrays": _zip_of("a.txt", b"a"),
    "cut": _zip_of("tokens.npy", _npy(np.arange(8)))[:-30],
    "header of a huge array": _zip_of("tokens.npy", HUGE_HEADER),
    "header that is no Python": _zip_of("tokens.npy", SMALL.replace(b"(2, 2), }", b"(2, 2), (")),
    "no NPY inside": _zip_of("tokens.npy", b"junk"),
    "pickled": _zip_of("tokens.npy", _npy(np.array([{}], dtype=object), pickle=True)),
    "words": _zip_of("tokens.npy", _npy(np.array(["a"]))),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_trace_is_named_in_one_line(run: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken.npz").write_bytes(data)
    ended = run("diff", "broken.npz", "--ids", "1,2,3,4,5,6,7,1")
    assert ended.code == 1
    _one_line(ended.err)
    assert "broken.npz" in ended.err
