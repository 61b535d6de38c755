"""A survey from its texts to its sums: what was done before is taken up, what is done is saved."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_transformer import __version__
from tui_transformer.analysis.survey.sums import Counts, Sums
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, write_whole
from tui_transformer.records import dataclass
from tui_transformer.survey.work import Batch, Spread, Work, add_texts, batches, read_items, spread_out
from tui_transformer.text.files import shown_path

SECONDS = 10.0
"""So often what is done is saved."""


@dataclass(frozen=True)
class Job:
    """A survey of texts in files; the results go to `out`, and the state is beside it."""

    work: Work
    files: tuple[str, ...]
    out: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that have to be the same where a survey is taken up, by the name of the option."""
        options, asked, given = self.work.options, self.work.asked, self.work.features
        return {
            "model": options.model,
            "vocab": options.vocab,
            "seed": options.seed,
            "dtype": options.dtype,
            "measure": list(asked.measures),
            "layers": None if asked.layers is None else sorted(asked.layers),
            "metric": [asked.metric[0], list(asked.metric[1])] if isinstance(asked.metric, tuple) else None,
            "top": asked.top,
            "length": asked.length,
            "files": list(self.files),
            **({} if given is None else {"features": [given.path, given.at, given.into]}),
        }


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a survey is: its counts, the texts that were done `before` it was taken up, and the bytes read."""

    counts: Counts
    before: int
    bytes: int


def run(
    job: Job,
    spread: Spread,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[Progress], None] = lambda _: None,
) -> tuple[Sums, bool]:
    """The sums of the texts that were read, and whether these are all; they are in the state file, too.

    Between batches `stop` says whether to, and `tell` is told how far it is.

    Raises:
        InputError: A text, the model or the state file cannot be used; what was done before is in the state file.
    """
    running = _Running(job)
    try:
        with spread_out(job.work, running.batches(), spread) as results:
            for result in results:
                if result is not None:
                    running.take(*result)
                tell(Progress(running.state.sums.counts, running.before, running.bytes))
                if stop():
                    return running.state.sums, False
                running.save(SECONDS)
            return running.state.sums, True
    finally:
        running.save()


class _Running:
    """A survey as it goes on."""

    def __init__(self, job: Job) -> None:
        self._path = state_path(job.out)
        saved = load_state(self._path, job.settings)
        self._known = saved.first if saved is not None else ""
        self.state = saved or State(job.settings, 0, "", "", Sums.nothing(job.work.asked.top))
        self.before, self.bytes = self.state.sums.counts.texts, 0
        self._files = job.files
        self._digest = hashlib.blake2b(digest_size=16)
        self._saved, self._at = self.state, time.monotonic()

    def batches(self) -> Iterator[Batch]:
        """The batches that are left; where it was stopped, before them the first of all, to be compared."""
        items = read_items(self._files, self._read)
        if self._known:
            first = next(batches(items), ())
            yield first
            items = itertools.chain(first, items)
            add_texts(self._digest, itertools.islice(items, self.state.read))
            if self._digest.hexdigest() != self.state.digest:
                raise InputError(
                    "the texts are not those of the survey that was stopped: remove its .state file to begin anew"
                )
        yield from batches(items)

    def take(self, batch: Batch, result: bytes) -> None:
        if self._known:
            if digest_of(result) != self._known:
                raise InputError(
                    f"{shown_path(self._path)}: the model, the program or the machine gives other numbers than before: "
                    "remove the file to begin anew"
                )
            self._known = ""
            return
        add_texts(self._digest, batch)
        sums = self.state.sums + Sums.from_bytes(result)[0]
        first = self.state.first or digest_of(result)
        self.state = State(self.state.settings, self.state.read + len(batch), self._digest.hexdigest(), first, sums)

    def save(self, seconds: float = 0.0) -> None:
        """Write the state file where there is something new, and the last time is so long ago."""
        if self.state is not self._saved and time.monotonic() - self._at >= seconds:
            self.state.save(self._path)
            self._saved, self._at = self.state, time.monotonic()

    def _read(self, count: int) -> None:
        self.bytes += count


ENDING = ".state"
LARGEST = 1 << 30
"""Bytes that are read."""


def state_path(out: Path) -> Path:
    """The file of a survey whose results go to `out`."""
    return out.with_name(f"{out.name}{ENDING}")


@dataclass(frozen=True, eq=False)
class State:
    """How far a survey is: what is asked and of which model, how many texts were read, and their sums.

    The digests are those of these texts, so that others are not taken for them, and of what the first batch gave, so
    that another model is not taken for this one.
    """

    settings: Mapping[str, Any]
    read: int
    digest: str
    first: str
    sums: Sums

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all; InputError where it cannot be."""
        more = {"settings": self.settings, "read": self.read, "digest": self.digest, "first": self.first}
        data = self.sums.to_bytes(**more, version=__version__)
        write_whole(path, f"{digest_of(data)}\n".encode() + data)


def load_state(path: Path, settings: Mapping[str, Any]) -> State | None:
    """The state of a survey that was stopped.

    None where there is none, InputError for a file of another survey, or none.
    """
    if not path.exists():
        return None
    check_regular(path)
    begin = f"remove {shown_path(path)} to begin anew, or name another --out"
    try:
        with path.open("rb") as file:
            digest, _, content = file.read(LARGEST).partition(b"\n")  # what is larger was changed
        unchanged = digest == digest_of(content).encode()
        sums, more = Sums.from_bytes(content if unchanged else b"")
        state = State(more["settings"], int(more["read"]), str(more["digest"]), str(more["first"]), sums)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{shown_path(path)} is not the state of a survey: {begin}") from error
    if state.settings != settings:
        differing = [name for name in settings if state.settings.get(name) != settings[name]]
        raise InputError(f"{shown_path(path)} is of a survey with another {', '.join(differing) or 'setting'}: {begin}")
    return state


def digest_of(data: bytes) -> str:
    """The digest of some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
