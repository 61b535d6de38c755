"""A survey on Ray: one model an actor, here or on a cluster; an actor that ends is replaced by Ray.

Batches go through `ray.data.map_batches` in windows, so that no more texts than one window are in memory. An actor
loads its model once a window. A model that is named by a folder has to be there on every machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.survey.work import ONE_THREAD, Batch, Batchwise, batch_bytes, batch_of

WINDOW, CHARACTERS = 1024, 1 << 26
"""Batches that are handed to Ray together, and characters of their texts."""

FROM_OUTSIDE = 128
"""Batches that are handed over together by a client: what comes of them comes at once, and nothing before."""

CLIENT = "ray://"
"""In front of an address: by way of Ray Client, which a machine outside of the cluster takes."""

SECONDS = 5.0
"""So long a cluster has to answer."""

REFUSED = "a cluster has the same versions of Ray and Python, and one that asks for a token needs RAY_AUTH_MODE=token"

LOCAL = "local"
"""The address that stands for this machine."""


def check_ray() -> None:
    """Raise InputError where Ray is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("ray", "pyarrow", "pandas")):
        raise InputError("ray needs Ray: pip install 'tui-transformer[ray]'; workers need nothing")


def on_ray(
    work: Batchwise, batches: Iterable[Batch], address: str = LOCAL, count: int | None = None, together: int = WINDOW
) -> Iterator[bytes]:
    """The sums of each batch, in order.

    The address is `local`, `auto` or HOST:PORT of a cluster that is there, ray://HOST:PORT from outside of it. There
    are so many actors, by default one for every CPU; batches are read and handed over so many `together`.

    Raises:
        InputError: The cluster is not there, or the model lacks what is measured.
    """
    if address.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
        raise InputError(
            f"ray {address} needs gRPC: pip install 'tui-transformer[ray]'; HOST:PORT of the cluster does not"
        )
    import ray

    own = not ray.is_initialized()
    if own:
        _connect(address, count)
    run, most = (_from_outside, min(together, FROM_OUTSIDE)) if address.startswith(CLIENT) else (_window, together)
    try:
        actors = count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        for window in windows(batches, most):
            yield from run(work, window, min(actors, len(window)))
    finally:
        if own:
            ray.shutdown()


def windows(batches: Iterable[Batch], most: int = WINDOW, most_characters: int = CHARACTERS) -> Iterator[list[Batch]]:
    """Batches that are in memory together: so many, or fewer of long texts."""
    window, characters = list[Batch](), 0
    for batch in batches:
        window.append(batch)
        characters += sum(len(item.source.text) for item in batch)
        if len(window) >= most or characters >= most_characters:
            yield window
            window, characters = [], 0
    if window:
        yield window


def _connect(address: str, count: int | None) -> None:
    import ray

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray does by itself in later versions
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # which it says itself, hence the silence
    here: dict[str, Any] = {"num_cpus": count, "include_dashboard": False} if address == LOCAL else {}
    environment = {"env_vars": dict(ONE_THREAD)}
    ended = signal.getsignal(signal.SIGTERM)
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    try:
        if port.isdigit():  # where nothing answers, Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"ray {address}: no cluster answers ({error}): start one, or give no address") from error
    try:
        with _silence():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=environment, **here)
    except (OSError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(f"ray {address}: Ray cannot be used there ({said}): {REFUSED}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ended)  # Ray has one of its own, which would lose what is done


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing is written to standard error, be it by Python or not; what goes wrong is raised all the same."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _window(work: Batchwise, window: Sequence[Batch], actors: int) -> Iterator[bytes]:
    """The sums of a window of batches, in order."""
    import ray

    context = ray.data.DataContext.get_current()
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # behind the import, which sets it
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    gpu = work.device != "cpu" and ray.cluster_resources().get("GPU", 0) >= 1
    rows = [{"number": number, "batch": batch_bytes(batch)} for number, batch in enumerate(window)]
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Actor,
        batch_size=1,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(size=actors),
        fn_constructor_args=(work,),
        num_gpus=1 if gpu else None,
    )
    done, following = dict[int, bytes](), 0
    with _failures():
        for row in results.iter_rows():
            if row["failed"]:
                raise InputError(str(row["failed"]))
            done[int(row["number"])] = bytes(row["sums"])
            while following in done:
                yield done.pop(following)
                following += 1


def _from_outside(work: Batchwise, window: Sequence[Batch], actors: int) -> Iterator[bytes]:
    """As `_window`, which a task in the cluster does: Ray Data needs more than a client has."""
    import ray

    task = ray.remote(num_cpus=0)(_inside).remote(work, list(window), actors)
    with _failures():
        done, failed = ray.get(task)
    yield from done
    if failed:
        raise InputError(failed)


def _inside(work: Batchwise, window: Sequence[Batch], actors: int) -> tuple[list[bytes], str]:
    return collected(_window(work, window, actors))


def collected(sums: Iterable[bytes]) -> tuple[list[bytes], str]:
    """Sums as far as they come, and the error that ends them."""
    done: list[bytes] = []
    try:
        done.extend(sums)
    except InputError as error:
        return done, str(error)
    return done, ""


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """An InputError in place of what Ray raises."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        said = str(error).strip().splitlines()[-1][:200]
        raise InputError(
            f"ray: an actor failed ({said}): the program has to be installed on every machine, in the same version"
        ) from error


class Actor:
    """A model, and what is done with it."""

    def __init__(self, work: Batchwise) -> None:
        self._work = work  # whose model is loaded when the first batch comes

    def __call__(self, rows: Any) -> dict[str, list[Any]]:
        """The sums of a batch, and what went wrong."""
        (batch,) = rows["batch"]
        sums, failed = collected(map(self._work.sums, [batch_of(bytes(batch))]))
        return {"number": list(rows["number"]), "sums": sums or [b""], "failed": [failed]}
