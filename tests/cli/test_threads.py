"""Threads of matrix products: one where other work has the cores, as many as were asked for where some were."""

from __future__ import annotations

import os
import sys

import pytest

from tui_transformer.cli import terminal

ONE = {terminal.PAUSE: terminal.SHORT, "OPENBLAS_NUM_THREADS": "1"}
FREE = {terminal.PAUSE: terminal.SHORT}


@pytest.mark.parametrize(
    ("load", "given", "wanted"),
    [
        (9.0, {}, ONE),
        (0.5, {}, FREE),
        (9.0, {"OMP_NUM_THREADS": "3"}, FREE | {"OMP_NUM_THREADS": "3"}),
        (9.0, {terminal.PAUSE: "4"}, ONE | {terminal.PAUSE: "4"}),
        (None, {}, FREE),
    ],
)
def test_the_number_of_threads_goes_by_what_the_cores_have_to_do(monkeypatch, load, given, wanted):
    environment = dict(given)
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delitem(sys.modules, "numpy")
    if load is None:
        monkeypatch.delattr(os, "getloadavg", raising=False)
    else:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    terminal.choose_threads()
    assert environment == wanted


def test_nothing_is_changed_once_numpy_is_there(monkeypatch):
    environment: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setitem(sys.modules, "numpy", sys)
    terminal.choose_threads()
    assert environment == {}
