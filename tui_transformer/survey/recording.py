"""Steps of a model recorded over many texts, into files that are read back as one array.

Every text is read alone, so that its numbers depend neither on its neighbours nor on how many processes there are.
Files and their index are written under temporary names and renamed: at any time the folder holds whole texts, and the
same call goes on behind them.
"""

from __future__ import annotations

import hashlib
import io
import json
import operator
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.measurable import at_least
from tui_transformer.analysis.survey.measures import LENGTH, NO_VOCABULARY, Item, encoded
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.names import find
from tui_transformer.engine.program import step_of_numbers
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, is_there, make_folder, write_whole, writing
from tui_transformer.model import Model
from tui_transformer.records import dataclass, replace
from tui_transformer.survey.processes import spread_of
from tui_transformer.survey.recorded import IDS, INDEX, TEXTS, Index, Kept, Recorded, file_of
from tui_transformer.survey.work import Batch, Spread, add_texts, batches, spread_out
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

SHARD = 1 << 26
"""Bytes of all steps behind which new files begin."""

SECONDS = 10.0
"""So often what is done is saved."""

GIVEN = "token IDs"
"""The file that items of token IDs are said to be from."""

BLOCK = 1 << 22
"""Cells of a weight that are read together where it need not be read whole."""


def record(
    model: Model,
    texts: Iterable[str | Sequence[int]],
    steps: Sequence[str],
    out: str | Path,
    *,
    length: int = LENGTH,
    workers: int | None = None,
    ray: str | None = None,
    report: Report = silent,
) -> Recorded:
    """The values of steps over texts, in a folder: of each one array with a row for every token, text behind text.

    Where the folder holds the first of the texts already, it goes on behind them. With `workers` the bytes are the same
    however many there are; in this process the last bits may differ, where products run on several threads.

    Args:
        model: The model; of processes, one whose weights are in a file or drawn from a seed.
        texts: Read one after the other, each a text or token IDs; padding has no row, nor have texts without a token.
        steps: Names, ends of names, or patterns as `*.output`. Each has a row for every token, or one for a text.
        out: The folder.
        length: Longer texts are cut to so many tokens.
        workers: Processes of one core each, with the model each; the file of a program needs its main guard then.
        ray: On Ray instead: "local", "auto", HOST:PORT of a cluster.
        report: Told how far it is; what it raises ends it, and what is done is kept.

    Raises:
        InputError: There is no such step or it has no rows of one shape, the folder holds something else or cannot be
            written, or the model has no vocabulary.
    """
    for listed, what in ((texts, "texts"), (steps, "steps")):
        if isinstance(listed, str):
            raise UsageError(f"{what} are a list: [{visible(listed[:40])!r}]")
    at_least(1, length=length)
    if workers is not None or ray is not None:
        model.weights.opened_again()
    program = model.program(2, 2)
    names = dict.fromkeys(program.step(each).name for wanted in steps for each in find(program.names, wanted))
    if not names:
        raise UsageError("there is no step to record: name one, as '0.output'")
    work = Recording(model, tuple(names), min(length, model.config.max_length))
    work.index("")  # may refuse a step, before the weights are read
    folder = expanded(out)
    make_folder(folder)
    store = _Store(folder, work.index(fingerprint(model, report)), report)
    items = (_item(model, number, text) for number, text in enumerate(texts))
    store.fill(work, items, spread_of(workers, ray))
    return Recorded.load(folder)


def _item(model: Model, number: int, text: str | Sequence[int]) -> Item:
    """A text, or token IDs with blanks between them."""
    if isinstance(text, str):
        if model.tokenizer is None:
            raise InputError(f"{model.name} {NO_VOCABULARY}, or give token IDs")
        return Item(number, Source("texts", number + 1, text))
    try:
        ids = None if isinstance(text, bytes) else [operator.index(each) for each in text]
    except TypeError:
        ids = None
    if ids is None:
        raise UsageError(f"texts are a list of texts or of token IDs, and {str(text)[:40]!r} is none")
    return Item(number, Source(GIVEN, number + 1, " ".join(map(str, ids))))


def fingerprint(model: Model, report: Report = silent) -> str:
    """A digest of a model's configuration and of all its weights, which it reads."""
    digest, program, weights = hashlib.blake2b(digest_size=16), model.program(1), model.weights
    digest.update(json.dumps([model.config.to_json(), str(model.backend.dtype)], sort_keys=True, default=str).encode())
    for name in sorted(program.weights):
        report(f"fingerprint · {name}")
        shape = program.shape(name)
        digest.update(f"{name} {shape}".encode())
        height = max(1, BLOCK // max(1, int(np.prod(shape[1:]))))
        for start in range(0, shape[0], height):
            part = weights.part(name, shape, slice(start, start + height))
            digest.update(model.backend.to_host(part).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Recording:
    """What every worker does with a batch of texts: the values of steps, by their own names."""

    model: Model
    steps: tuple[str, ...]
    length: int

    @property
    def device(self) -> str:
        """Where it computes."""
        return self.model.backend.device

    def index(self, fingerprint: str) -> Index:
        """The index of no text: what is kept, and of which model; InputError where a step has no rows of one shape."""
        program, dtype = self.model.program(2, 2), self.model.backend.dtype.name
        arrays = dict[str, Kept]()
        for name in self.steps:
            axes = step_of_numbers(program, name).axes
            tokens = [axis.sequence for axis in axes if axis.sequence]
            if len(tokens) > 1:
                raise InputError(
                    f"{name} is tokens × tokens: texts of other lengths have other columns, and no rows of one shape"
                )
            shape = tuple(axis.size for axis in axes if not axis.sequence)
            arrays[name] = Kept(tokens[0] if tokens else TEXTS, shape, dtype)
        given = (name for name in program.givens if f".{name}".endswith(f".{IDS}"))
        ids = {program.axes(name)[0].sequence: name for name in given}
        sequences = sorted({kept.sequence for kept in arrays.values()})
        arrays |= {ids[each]: Kept(each, (), "int64") for each in sequences if each in ids}
        aliases = {alias: name for alias, name in program.aliases.items() if name in arrays}
        settings = {"model": self.model.name, "fingerprint": fingerprint, "length": self.length}
        return Index(settings, arrays, aliases, {each: [] for each in sequences})

    def sums(self, batch: Batch) -> bytes:
        """The rows of a batch and how many of each text, as an NPZ file; InputError where memory is short."""
        index = self.index("")
        none = {name: np.zeros((0, *kept.shape), kept.dtype) for name, kept in index.arrays.items()}
        try:
            texts = [self._read(item.source, index) or none for item in batch]
        except MemoryError as error:
            raise InputError("not enough memory: use fewer workers, or a smaller length") from error
        first = {kept.sequence: name for name, kept in index.arrays.items()}  # an array of each sequence
        lengths = {sequence: [len(rows[first[sequence]]) for rows in texts] for sequence in index.counts}
        arrays = {f"rows {name}": np.concatenate([rows[name] for rows in (none, *texts)]) for name in none}
        arrays |= {f"counts {sequence}": np.array(each, np.int64) for sequence, each in lengths.items()}
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()

    def _read(self, source: Source, index: Index) -> dict[str, Host]:
        """The rows of a text; none at all of one without a token."""
        ids: Sequence[int] = list(map(int, source.text.split()))[: self.length] if source.file == GIVEN else ()
        segments: Sequence[int] | None = None
        if source.file != GIVEN:
            encoding = encoded(self.model, source.text, self.length)
            ids, segments = encoding.ids if encoding.tokens else (), encoding.segments
        if not ids:
            return {}
        trace, rows = self.model.trace(ids=ids, segments=segments, budget=0), dict[str, Host]()
        values = trace.to_dict(self.steps)
        for name, kept in index.arrays.items():
            read = trace.givens[name][0] if name in trace.givens else values[name]
            # the axis of the tokens in front, without padding; of a step without one, one row
            places = [(at, axis) for at, axis in enumerate(trace.program.axes(name)) if axis.sequence]
            read = np.moveaxis(read, places[0][0], 0)[real_tokens(trace, places[0][1])] if places else read[None]
            if read.shape[1:] != kept.shape:
                raise InputError(f"{name} has rows of other shapes in texts of other lengths: it cannot be recorded")
            rows[name] = read
        return rows


class _Store:
    """A folder that is written to: of files that are full the index, of the last one the rows as well."""

    def __init__(self, folder: Path, empty: Index, report: Report) -> None:
        self._folder, self._report = folder, report
        self.index = self._known(empty) if is_there(folder / INDEX) else empty
        self._saved, self._digest, self._at = self.index, hashlib.blake2b(digest_size=16), time.monotonic()
        self._rows: dict[str, list[Host]] = {name: [] for name in self.index.arrays}
        self._open = False
        if not self.index.stops:
            return
        for left in folder.glob(".*.npy.????????"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)
        data, number = Recorded(folder, self.index), len(self.index.stops) - 1
        for name, parts in self._rows.items():  # those of the last file, if it is not full
            rows = data[name]
            parts.append(rows[int(rows.starts[number]) :])
        self._open = self._size < SHARD
        if not self._open:
            self._rows = {name: [] for name in self._rows}

    def _known(self, empty: Index) -> Index:
        """What was recorded before; InputError where it is of something else."""
        known = Index.read(self._folder)
        own, other = ({**each.settings, "steps": sorted(each.arrays)} for each in (empty, known))
        own["precision"], other["precision"] = (
            sorted({kept.dtype for kept in each.arrays.values()}) for each in (empty, known)
        )
        differing = [name for name in own if other.get(name) != own[name]]
        if differing:
            raise InputError(
                f"{shown_path(self._folder)} holds steps with another {', '.join(differing)}: name another folder"
            )
        return known

    @property
    def _size(self) -> int:
        return sum(part.nbytes for parts in self._rows.values() for part in parts)

    def fill(self, work: Recording, items: Iterator[Item], spread: Spread) -> None:
        """Add what comes of texts behind those that are there; what is done is saved whatever happens."""
        add_texts(self._digest, islice(items, self.index.texts))
        if self.index.texts and self._digest.hexdigest() != self.index.digest:
            raise InputError(f"{shown_path(self._folder)} holds steps over other texts: name another folder")
        try:
            with spread_out(work, batches(items), spread) as results:
                for result in results:
                    self._report(f"{self.index.texts:,} texts recorded")
                    if result is not None:
                        self._add(*result)
                    if time.monotonic() - self._at >= SECONDS:
                        self._save()
            self.index = replace(self.index, complete=True)
        finally:
            self._save()

    def _add(self, batch: Batch, result: bytes) -> None:
        with np.load(io.BytesIO(result), allow_pickle=False) as arrays:
            for name, parts in self._rows.items():
                parts.append(arrays[f"rows {name}"])
            for sequence, each in self.index.counts.items():
                cast("list[int]", each).extend(arrays[f"counts {sequence}"].tolist())
        add_texts(self._digest, batch)
        stops = [*self.index.stops[: -1 if self._open else None], self.index.texts + len(batch)]
        self._open = True
        self.index = replace(self.index, stops=stops, digest=self._digest.hexdigest(), complete=False)
        if self._size >= SHARD:
            self._save()
            self._rows, self._open = {name: [] for name in self._rows}, False

    def _save(self) -> None:
        """Write the file that is not full, then the index, where there is something new."""
        if self.index is self._saved:
            return
        if self._open:
            for name, parts in self._rows.items():
                whole = np.ascontiguousarray(np.concatenate(parts))
                self._rows[name] = [whole]
                with writing(file_of(self._folder, name, len(self.index.stops) - 1)) as file:
                    np.lib.format.write_array(file, whole, version=(1, 0), allow_pickle=False)
        write_whole(self._folder / INDEX, json.dumps(self.index.to_json()).encode())
        self._saved, self._at = self.index, time.monotonic()
