"""`models` in any environment, and `fetch`: what is taken from the hub, and every way in which it ends early."""

from __future__ import annotations

import errno
import hashlib
import http.server
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from command_line import REFERENCES, Run

from tui_transformer.errors import InputError
from tui_transformer.model import checkpoint
from tui_transformer.model.local_models import TRAINED, find_model, local_models, trained_models

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
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
    assert find_model(OWN) is None
    assert "no model of this name" in run("show", "--model", OWN).err


def test_a_checkpoint_that_cannot_be_read_is_a_line_among_the_others(run: Run, site: Path) -> None:
    carry(site, "nested", b"[" * 100_000)
    carry(site, "foreign", b'{"model_type": "mamba"}')
    carry(site, "second_package", (REFERENCES / "bert" / "config.json").read_bytes())
    ended = run("models")
    assert (ended.code, ended.err) == (0, "")
    lines = {line.split()[0]: line for line in ended.out.splitlines()}
    assert len(lines["nested"].split()) > len(("name", "package"))
    assert "config.json: model_type 'mamba' is not supported" in lines["foreign"]
    assert lines["encoder-decoder"].split()[1:3] == ["built", "in"]
    assert "bert: " in lines["second_package"]
    assert set(trained_models()) <= set(lines)


def test_whatever_goes_wrong_with_one_the_others_are_listed(run: Run, monkeypatch, site: Path) -> None:
    def read(folder: Path) -> object:
        if errors and folder == TRAINED / "copy":
            raise errors[-1]
        return original(folder)

    original = checkpoint.read_config
    monkeypatch.setattr(checkpoint, "read_config", read)
    errors = [RuntimeError("odd"), RecursionError(), KeyError("x"), InputError("named"), OSError(5, "x")]
    while errors:
        assert "writes very short stories" in run("models", code=0).out
        errors.pop()
    # a list of files that cannot be decoded belongs to no model
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


# `fetch`


NAME, COMMIT = "org/tiny", "abc123"
IN_THE_HUB = ("config.json", "model.safetensors", "tokenizer.json")


@dataclass
class Hub:
    """A hub that serves a folder, and a cache as the library lays it out."""

    cache: Path
    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(IN_THE_HUB, 10))
    fetched: list[str] = field(default_factory=list)
    fails: Callable[[str], BaseException | None] = lambda _: None
    commit: str | None = COMMIT

    def model_info(self, name: str, **_: object) -> SimpleNamespace:
        if error := self.fails("model_info"):
            raise error
        siblings = [
            SimpleNamespace(rfilename=file, size=size, lfs=None, blob_id=f"of {file}")
            for file, size in self.files.items()
        ]
        return SimpleNamespace(sha=self.commit, siblings=siblings)

    def download(self, name: str, file: str, *, revision: str, cache_dir: Path) -> str:
        if error := self.fails(file):
            raise error
        folder = cache_dir / f"models--{name.replace('/', '--')}" / "snapshots" / revision
        folder.mkdir(parents=True, exist_ok=True)
        source = REFERENCES / "bert" / file
        if source.exists():
            shutil.copy(source, folder / file)
        else:
            (folder / file).write_bytes(b"")
        self.fetched.append(file)
        return str(folder / file)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    fake = Hub(tmp_path / "cache")
    module = ModuleType("huggingface_hub")
    module.__spec__ = ModuleSpec("huggingface_hub", None)
    module.HfApi = lambda: SimpleNamespace(model_info=fake.model_info)  # type: ignore[attr-defined]
    module.hf_hub_download = fake.download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    monkeypatch.setenv("HF_HUB_CACHE", str(fake.cache))
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    return fake


def test_a_fetched_model_opens_by_its_name_and_offline_it_is_said_where_it_is(run: Run, hub: Hub, monkeypatch) -> None:
    ended = run("fetch", NAME)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines()[-1].endswith(f"open it with tui-transformer --model {NAME}")
    assert "1 of 3  tokenizer.json  10 B" in ended.err
    assert run("show", "embedding.output", "--model", NAME, "--text", "the waves").code == 0
    # offline
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.fails = lambda _: error("OfflineModeIsEnabled")
    ended = run("fetch", NAME)
    assert "offline (HF_HUB_OFFLINE is set); it is in the cache already: tui-transformer --model org/tiny" in ended.err
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    hub.fails = lambda _: RuntimeError("401")
    assert "org/tiny could not be fetched: 401" in run("fetch", NAME).err


def test_only_what_is_read_is_fetched_and_the_configuration_last(run: Run, hub: Hub) -> None:
    shards = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json")
    unwanted = ("pytorch_model.bin", "tf_model.h5", "README.md", "onnx/model.safetensors", "consolidated.safetensors")
    others = ("vocab.json", "merges.txt", "generation_config.json", "source.spm", "added_tokens.json", "model.pt")
    hub.files = dict.fromkeys((*IN_THE_HUB, *shards, *unwanted, *others), 1)
    run("fetch", NAME)
    assert set(hub.fetched) == {*IN_THE_HUB, *shards, *others} - {"model.pt"}
    assert hub.fetched[-1] == "config.json"


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("stop", "file"), [(KeyboardInterrupt(), IN_THE_HUB[0]), *((FULL, file) for file in IN_THE_HUB)]
)
def test_a_model_that_is_not_whole_is_not_taken_for_one(run: Run, hub: Hub, stop: BaseException, file: str) -> None:
    hub.fails = lambda what: stop if what == file else None
    assert run("fetch", NAME).code != 0
    assert find_model(NAME) is None
    hub.fails = lambda _: None
    assert run("fetch", NAME).code == 0
    assert find_model(NAME) is not None


def test_an_interrupt_says_what_is_there(run: Run, hub: Hub) -> None:
    hub.fails = lambda what: SystemExit(130) if what == "config.json" else None
    ended = run("fetch", NAME)
    said = f"2 of 3 files of {NAME} are in {hub.cache / 'models--org--tiny'}: the same command goes on"
    assert (ended.code, ended.err.splitlines()[-1]) == (130, said)


def test_an_older_copy_stays_as_it_was_until_the_new_one_is_whole(run: Run, hub: Hub) -> None:
    old = hub.cache / "models--org--tiny"
    (old / "snapshots" / "old").mkdir(parents=True)
    (old / "refs").mkdir()
    (old / "refs" / "main").write_text("old")
    hub.fails = lambda what: KeyboardInterrupt() if what == "config.json" else None
    run("fetch", NAME)
    assert (old / "refs" / "main").read_text() == "old"


def error(name: str, message: str = "what the library says\nin lines", above: type[Exception] = OSError) -> Exception:
    return type(name, (above,), {})(message)


@pytest.mark.parametrize(
    ("raised", "problem"),
    [
        (error("RepositoryNotFoundError"), "no model in the hub is called org/tiny, or it is private"),
        (type("GatedRepoError", (type("RepositoryNotFoundError", (OSError,), {}),), {})(), "org/tiny is gated"),
        (error("OfflineModeIsEnabled"), "offline (the hub cannot be reached: what the library says)"),
        (ConnectionError("no route"), "offline (the hub cannot be reached: no route)"),
        (error("ConnectError", above=type("TransportError", (Exception,), {})), "offline (the hub cannot be reached"),
        (FULL, "the disk is full: make room"),
        (PermissionError(13, "denied"), "the cache may not be written"),
        (NotADirectoryError(20, "no"), "the cache would lie in a file"),
        (json.JSONDecodeError("Expecting value", "<html>", 0), "what answered is not the hub: log in to the network"),
        (RuntimeError("something\nlong"), "org/tiny could not be fetched: something"),
    ],
)
def test_what_goes_wrong_is_one_line(run: Run, hub: Hub, raised: Exception, problem: str) -> None:
    hub.fails = lambda what: raised if what == "model_info" else None
    ended = run("fetch", NAME)
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (1, "", 1)
    assert problem in ended.err


def test_names_that_cannot_be_are_refused_before_anything_is_asked(run: Run, hub: Hub) -> None:
    hub.fails = lambda _: AssertionError("the hub was asked")
    for name in ("", "a b", "a/b/c", "https://hub/org/name", "../x", "-a", "a--b/c", "x" * 200):
        assert "write ORG/NAME" in run("fetch", "--", name, code=1).err


def test_models_that_could_not_be_opened_or_have_no_room_are_not_fetched(run: Run, hub: Hub) -> None:
    for files, problem in (
        ({"config.json": 1, "pytorch_model.bin": 1}, "no safetensors weights: pytorch_model.bin is not fetched"),
        ({"model.safetensors": 1}, "has no config.json"),
        ({"config.json": 1, "onnx/model.safetensors": 1}, "no safetensors weights"),
        (dict.fromkeys(IN_THE_HUB, 10) | {"model.safetensors": 1 << 60}, "org/tiny needs"),
    ):
        hub.files = files
        assert problem in run("fetch", NAME).err
        assert hub.fetched == []
    blobs = hub.cache / "models--org--tiny" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "of model.safetensors").touch()  # came before: it needs no room
    assert run("fetch", NAME).code == 0


@pytest.mark.parametrize("commit", [None, "../../../x"])
def test_a_commit_that_cannot_be_the_name_of_a_folder_is_refused(run: Run, hub: Hub, commit: str | None) -> None:
    hub.commit = commit
    assert "has no commit that can be" in run("fetch", NAME).err
    assert not hub.fetched


def test_without_the_extra_the_way_to_install_it_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name == "huggingface_hub" else there(name)
    )
    ended = run("fetch", NAME)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1)
    assert "pip install huggingface_hub" in ended.err


def test_the_library_itself_says_that_it_is_offline(environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    command = [sys.executable, "-m", "tui_transformer", "fetch", NAME]
    own = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    ended = subprocess.run(command, env=environment | own, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == f"tui-transformer: {NAME} cannot be fetched: offline (HF_HUB_OFFLINE is set)\n"


# `fetch` from a server


class Server(http.server.ThreadingHTTPServer):
    """A hub of one model: its index tells digests of the true files, and it sends what `sent` holds."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.true = {file: (REFERENCES / "bert" / file).read_bytes() for file in IN_THE_HUB}
        self.sent = dict(self.true)

    def digest(self, file: str) -> str:
        """As the hub names a file: of large ones the SHA-256, of others the object of git."""
        data = self.true[file]
        if file.endswith(".safetensors"):
            return hashlib.sha256(data).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def index(self) -> bytes:
        siblings = []
        for file, data in self.true.items():
            digest = self.digest(file)
            large = {"lfs": {"size": len(data), "sha256": digest, "pointerSize": 130}} if len(digest) == 64 else {}
            siblings.append({"rfilename": file, "size": len(data), "blobId": digest[:40], **large})
        return json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings, "tags": []}).encode()


class Answers(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        file = self.path.partition("?")[0].rpartition("/")[2]
        data = self.server.sent[file] if file in self.server.sent else self.server.index()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        if file in self.server.sent:
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{self.server.digest(file)}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815 - as the library names it

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("huggingface_hub", reason="the extra fetch is not installed")
    with Server() as serves:
        threading.Thread(target=serves.serve_forever, daemon=True).start()
        yield serves
        serves.shutdown()


@pytest.mark.parametrize(("file", "kind"), [("model.safetensors", "SHA-256"), ("tokenizer.json", "SHA-1")])
def test_a_file_that_was_changed_on_the_way_is_refused(environment, server, tmp_path, file, kind):
    def fetch() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tui_transformer", "fetch", NAME]
        own = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path),
            "NO_PROXY": "*",
        } | dict.fromkeys(OFFLINE, "0")
        return subprocess.run(command, env=environment | own, capture_output=True, text=True, timeout=60)

    data = server.true[file]
    server.sent[file] = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    ended = fetch()
    assert ended.returncode == 1
    assert f"{file} did not arrive as the hub has it (its {kind} is " in ended.stderr.splitlines()[-1]
    folder = tmp_path / "hub" / "models--org--tiny"
    assert not (folder / "refs" / "main").exists()
    assert not (folder / "blobs" / server.digest(file)).exists()

    server.sent[file] = data
    assert fetch().returncode == 0
    assert (folder / "snapshots" / COMMIT / file).read_bytes() == data

    # what lies in the cache is looked at as well
    (folder / "blobs" / server.digest(file)).write_bytes(data[:-1])
    assert "fetch again" in fetch().stderr
    assert fetch().returncode == 0
