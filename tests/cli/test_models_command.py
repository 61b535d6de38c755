"""`models` in an environment as a plain `pip install` leaves it, and beside installed things that are broken."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest
from command_line import REFERENCES, Run

from tui_transformer.errors import InputError
from tui_transformer.model import checkpoint
from tui_transformer.model.local_models import TRAINED, find_model, local_models, trained_models

OWN = "tui_transformer"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of installed packages, and an empty cache."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    there = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: there(path=[str(folder)]))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return folder


def install(site: Path, name: str, files: list[str]) -> None:
    """Metadata that pip keeps of a package: its name, and the list of its files."""
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))


def carry(site: Path, name: str, config: bytes) -> Path:
    """An installed package with a checkpoint."""
    (site / name).mkdir()
    (site / name / "__init__.py").write_text("")
    (site / name / "config.json").write_bytes(config)
    (site / name / "model.safetensors").write_bytes(b"")
    install(site, name, [f"{name}/model.safetensors"])
    return site / name


def test_the_installed_program_does_not_list_itself_as_a_package(run: Run, site: Path) -> None:
    install(site, OWN, [f"{OWN}/trained/{name}/model.safetensors" for name in trained_models()])
    ended = run("models")
    assert (ended.code, ended.err) == (0, "")
    assert [line.split()[0] for line in ended.out.splitlines() if " package " in line] == []
    assert [line.split()[0] for line in ended.out.splitlines() if " trained " in line] == list(trained_models())


def test_the_program_itself_is_no_model(run: Run) -> None:
    assert find_model(OWN) is None
    assert "no model of this name" in run("show", "--model", OWN).err


BROKEN = {
    "empty": b"",
    "not UTF-8": b"\xff\xfe",
    "not JSON": b"{",
    "a list": b"[]",
    "nested too deep": b"[" * 100_000,
    "a long number": b'{"model_type": "bert", "hidden_size": ' + b"9" * 5_000 + b"}",
    "another family": b'{"model_type": "mamba"}',
    "another type": b'{"model_type": ["bert"]}',
}


@pytest.mark.parametrize("config", BROKEN.values(), ids=BROKEN)
def test_a_checkpoint_that_cannot_be_read_is_a_line_among_the_others(run: Run, site: Path, config: bytes) -> None:
    carry(site, "broken_package", config)
    carry(site, "second_package", (REFERENCES / "bert" / "config.json").read_bytes())
    ended = run("models")
    assert (ended.code, ended.err) == (0, "")
    lines = {line.split()[0]: line for line in ended.out.splitlines()}
    assert len(lines["broken_package"]) > len("broken_package  package")
    assert "bert: " in lines["second_package"]
    assert set(trained_models()) <= set(lines)


@pytest.mark.parametrize(
    "error", [RuntimeError("odd"), RecursionError(), KeyError("x"), InputError("named"), OSError(5, "x")]
)
def test_whatever_goes_wrong_with_one_the_others_are_listed(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def read(folder: Path) -> object:
        if folder == TRAINED / "copy":
            raise error
        return original(folder)

    original = checkpoint.read_config
    monkeypatch.setattr(checkpoint, "read_config", read)
    ended = run("models")
    assert ended.code == 0
    assert "writes very short stories" in ended.out


def test_a_list_of_files_that_cannot_be_decoded_belongs_to_no_model(site: Path) -> None:
    install(site, "odd_package", [])
    (site / "odd_package-1.0.dist-info" / "RECORD").write_bytes(b"\xff.safetensors,sha256=x,1\n")
    assert {model.source for model in local_models()} == {"trained"}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_folders_that_may_not_be_read_end_no_list(run: Run, site: Path, tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir(mode=0)
    locked = carry(site, "locked_package", b"{}")
    locked.chmod(0)
    try:
        ended = run("models")
    finally:
        locked.chmod(0o755)
    assert ended.code == 0
