"""A survey on a real Ray of two workers on this machine; behind -m slow, and only where Ray is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tui_transformer.analysis.survey.measures import Asked
from tui_transformer.errors import InputError
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey import on_ray
from tui_transformer.survey.processes import in_processes
from tui_transformer.survey.running import Job, run
from tui_transformer.survey.work import Batch, Work, batch_bytes, batch_of, batches, read_items

INSTALLED = all(importlib.util.find_spec(name) for name in ("ray", "pandas", "pyarrow"))
needs_ray = pytest.mark.skipif(not INSTALLED, reason="needs Ray")
TWO = partial(on_ray.on_ray, count=2)
RAY = (sys.executable, "-m", "ray.scripts.scripts")


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray writes no token into the home folder, and asks for none."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


def job(folder: Path, count: int = 100, model: str = "story", asked: Asked | None = None) -> Job:
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(f"The fox found {number} shells ." for number in range(count)), encoding="utf-8")
    work = Work(ModelOptions(model, device="cpu"), asked or Asked(("first", "neurons"), top=2))
    return Job(work, (str(corpus),), folder / "out.csv")


def test_windows_hold_so_many_batches_or_so_many_characters_which_survive_the_way(tmp_path: Path):
    read = list(batches(read_items(job(tmp_path, 100).files)))
    assert [len(window) for window in on_ray.windows(read, 3)] == [3, 3, 1]
    windows = list(on_ray.windows(read, 3, 600))
    assert [len(window) for window in windows] == [2, 2, 2, 1]
    assert [batch for window in windows for batch in window] == read
    assert list(on_ray.windows([])) == []
    for batch in read:
        assert batch_of(batch_bytes(batch)) == batch


def actors_below(pid: int) -> list[int]:
    """The processes of actors whose first ancestors are this process."""
    actors, parents = [], {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if b"MapWorker" in name:
            actors.append(int(folder.name))
    return [each for each in actors if pid in ancestors(each, parents)]


def ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


@pytest.fixture
def cluster() -> Iterator[tuple[str, str]]:
    """A cluster that is there already, of two CPUs: its address inside, and the one for clients."""
    port, outside = free_ports(2)
    address = f"127.0.0.1:{port}"
    options = ("--num-cpus=2", "--object-store-memory=80000000", "--include-dashboard=false", "--disable-usage-stats")
    ways = (f"--port={port}", f"--ray-client-server-port={outside}", "--block")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
        subprocess.Popen([*RAY, "start", "--head", *ways, *options, f"--temp-dir={folder}"], **quiet) as head,
    ):
        try:
            while subprocess.run([*RAY, "health-check", f"--address={address}"], capture_output=True).returncode:
                assert head.poll() is None
            while importlib.util.find_spec("grpc") and not answers(outside):  # a moment after the cluster itself
                assert head.poll() is None
            yield address, f"ray://127.0.0.1:{outside}"
        finally:
            head.terminate()


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("there", [False, True])
def test_two_workers_of_ray_give_what_one_process_gives_though_one_is_killed(tmp_path, there, request):
    address = request.getfixturevalue("cluster")[0] if there else on_ray.LOCAL
    one, _ = run(job(tmp_path), partial(in_processes, count=1))
    killed: list[int] = []

    def killing(work: Work, batches: Iterator[Batch]) -> Iterator[bytes | None]:
        for result in on_ray.on_ray(work, batches, address, 2, 5):
            if not killed and (actors := actors_below(os.getpid())):
                killed.append(actors[0])
                os.kill(actors[0], signal.SIGKILL)
            yield result

    (tmp_path / "out.csv.state").unlink()
    two, all_read = run(job(tmp_path), killing)
    assert all_read
    assert killed
    assert two.to_bytes() == one.to_bytes()


@pytest.mark.slow
@needs_ray
@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs gRPC")
@pytest.mark.filterwarnings("ignore")
def test_from_outside_of_a_cluster_it_gives_what_one_process_gives(tmp_path: Path, cluster: tuple[str, str]):
    one, _ = run(job(tmp_path, 40), partial(in_processes, count=1))
    (tmp_path / "out.csv.state").unlink()
    two, all_read = run(job(tmp_path, 40), partial(on_ray.on_ray, address=cluster[1], count=2))
    assert all_read
    assert two.to_bytes() == one.to_bytes()


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_what_answers_and_is_no_cluster_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(**_: object) -> None:
        raise ConnectionError("Failed to connect to Ray cluster")

    monkeypatch.setattr("ray.init", refused)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=f"ray {address}: Ray cannot be used there .*RAY_AUTH_MODE=token"):
            run(job(tmp_path, 20), partial(on_ray.on_ray, address=address))


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_what_a_cluster_or_an_actor_cannot_do_is_said_at_once(tmp_path: Path):
    with pytest.raises(InputError, match="no vocabulary"):
        run(job(tmp_path, 20, "attention"), TWO)
    with pytest.raises(InputError, match=r"ray 127\.0\.0\.1:1: no cluster answers .*refused"):
        run(job(tmp_path, 20), partial(on_ray.on_ray, address="127.0.0.1:1"))


def test_a_way_in_that_ray_lacks_a_package_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"ray ray://head:10001 needs gRPC: pip install 'tui-transformer\[ray\]'"):
        run(job(tmp_path, 20), partial(on_ray.on_ray, address="ray://head:10001"))


def test_what_comes_before_an_error_is_kept_with_it():
    def sums() -> Iterator[bytes]:
        yield from (b"first", b"second")
        raise InputError("the next cannot be done")

    assert on_ray.collected(sums()) == ([b"first", b"second"], "the next cannot be done")
