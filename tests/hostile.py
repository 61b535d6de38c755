"""Hostile files: what every reader has to stand, and the one outcome that it may have beside reading it."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, configuration, given, settings
from hypothesis import strategies as st

from tui_transformer.errors import InputError

resource = pytest.importorskip("resource", reason="memory cannot be bounded here")

MOST_MEMORY = 2 << 30
WANTED = os.environ.get("HOSTILE_EXAMPLES")
FEW, MANY = 12, int(WANTED or 40)
COUNTS, COUNTS_OF_EVERY_FAMILY = (
    pytest.mark.parametrize("count", [few, pytest.param(MANY, marks=pytest.mark.slow)]) for few in (FEW, FEW // 3)
)
"""For every property: some examples, always the same; where HOSTILE_EXAMPLES says how many, others each time."""

configuration.set_hypothesis_home_dir(Path(configuration.__file__).parent / "never written")

HUGE = 10**30
NUMBERS = [0, 1, -1, 2, 7, 2**31, 2**63, HUGE, -HUGE, 0.5, -0.0, 1e308, 1e-320, math.inf, -math.inf, math.nan]
TEXTS = ["", "1", "text", "\x1b[31m\n", chr(0xD800), "x" * 5000]
LISTS = [[], [1], [[]], {}, {"a": 1}, [None] * 3]
VALUES = st.sampled_from([None, True, False, *NUMBERS, *TEXTS, *LISTS])
"""Values that may stand in a JSON file in place of anything."""


def hold(count: int, check: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Run a property on so many examples."""
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    usual = settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=count in (FEW, FEW // 3) or WANTED is None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    usual(given(**strategies)(check))()


def hold_file(count: int, path: Path, data: st.SearchStrategy[bytes], read: Callable[[], Any], *others: Path) -> None:
    """A file is read whatever is in it, or refused in one line that names it, or one of the others.

    What is asked of what was read, the reader asks itself.
    """

    def check(data: bytes) -> None:
        path.write_bytes(data)
        read_or_refused(read, path, *others)

    hold(count, check, data=data)


def read_or_refused(read: Callable[[], Any], *paths: Path) -> Any:
    """The result of a reader, in bounded memory; None where it refuses, in one line that names one of the files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_taken() + MOST_MEMORY, hard))
    try:
        return read()
    except InputError as refused:
        line = str(refused)
        assert len(line.splitlines()) == 1, line
        assert any(path.name in line for path in paths), line
        assert len(line) < 1000, line
        return None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _taken() -> int:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("VmData"))


def places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a JSON document but the whole."""
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in pairs:
        yield (*at, key)
        yield from places(value, (*at, key))


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """A JSON document with one to three values that are missing, or others."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        nodes = sorted(places(document), key=str)
        if not nodes:
            return draw(VALUES)
        *above, key = draw(st.sampled_from(nodes))
        inside = document
        for step in above:
            inside = inside[step]
        if draw(st.booleans()) and draw(st.booleans()):
            del inside[key]
        else:
            inside[key] = copy.deepcopy(draw(VALUES))
    return document


def as_json(document: Any) -> bytes:
    """A JSON file; what cannot be written as UTF-8 is escaped."""
    return json.dumps(document).encode()


def broken_json(document: Any) -> st.SearchStrategy[bytes]:
    """A JSON file with other values, or that is damaged."""
    return st.one_of(changed(document).map(as_json), damaged(as_json(document)))


def broken_tensors(raw: bytes) -> st.SearchStrategy[bytes]:
    """A file of safetensors with other values in its header, or that is damaged."""
    begin = 8 + int.from_bytes(raw[:8], "little")
    headers = changed(json.loads(raw[8:begin])).map(as_json)
    return st.one_of(headers.map(lambda text: len(text).to_bytes(8, "little") + text + raw[begin:]), damaged(raw))


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """A file that is cut, or has bytes that are others, more or gone."""
    raw = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        kind = draw(st.sampled_from(("cut", "other", "more", "gone", "twice")))
        if kind == "cut":
            del raw[at:]
        elif kind == "other":
            raw[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
        elif kind == "more":
            raw[at:at] = draw(st.one_of(st.binary(max_size=8), st.sampled_from(NASTY)))
        elif kind == "gone":
            del raw[at : at + draw(st.integers(1, 20))]
        else:
            raw[at:at] = raw[at : at + draw(st.integers(1, 40))]
    return bytes(raw)


NASTY = [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b"\xed\xa0\x80",
    b"[" * 5000,
    b"9" * 5000,
    b'{"a":' * 3000,
]
