"""Shared by several test folders."""

from __future__ import annotations

import gc
import os
import signal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run beside each other: more would wait

import hypothesis
import pytest
from reference import Reference, reference_of

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

gc.set_threshold(50_000)  # every screen leaves cycles: looking for them as often as usual took a third of the time


def pytest_collection_finish() -> None:
    """Leave modules and tests out of every collection of garbage: a look through them takes half a second."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A short name for a test of a long text: workers send all names, and megabytes of them took seconds."""
    return f"{argname} of {len(val)}" if isinstance(val, str | bytes) and len(val) > 200 else None


hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no fault of an example
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session", params=["vanilla-encoder", "vanilla-decoder", "vanilla-encoder-decoder"])
def reference(request: pytest.FixtureRequest) -> Reference:
    """Each of the reference checkpoints in turn."""
    return reference_of(request.param)
