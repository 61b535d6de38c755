"""The log of a run: a line a step, as CSV or as JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from pathlib import Path

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_there, write_whole
from tui_transformer.learning.loop import Measured, Record
from tui_transformer.records import dataclass, field

COLUMNS = (
    "step", "epoch", "loss", "accuracy", "learning_rate", "gradient_norm", "tokens_per_second",
    "validation_loss", "validation_accuracy", "validation_perplexity", "epoch_loss", "epoch_accuracy",
)  # fmt: skip


FORMATS = (".csv", ".jsonl")
"""The ends of the names of logs."""

LOGS = ("log.jsonl", "log.csv")
"""The files in a run's folder that its log may be."""


def log_in(folder: Path) -> Path:
    """The log that a run's folder has; where it has none yet, the place of one."""
    return next((folder / name for name in LOGS if is_there(folder / name)), folder / LOGS[0])


class Log:
    """Lines added to a file as soon as they are known."""

    def __init__(self, path: Path, step: int) -> None:
        """Open a log; lines after `step`, which a run that was killed has written and makes again, are removed.

        UsageError for a name that ends in neither .csv nor .jsonl; InputError where it cannot be written, or is no log.
        """
        _check_name(path)
        self.path = path
        self.epoch: Epoch | None = None
        before, self._epochs = _kept_lines(path, step)
        head = ",".join(COLUMNS) + "\n" if path.suffix == ".csv" else ""
        write_whole(path, (head + "".join(before)).encode())
        self._file = path.open("ab", buffering=0)
        self._waiting = b""

    def write(self, record: Record, measured: Measured | None) -> None:
        """Add a line; `epoch` is then the one that its step ended. One that cannot be written is added with the next.

        InputError where it cannot be written; the file ends with a whole line.
        """
        self.epoch = self._epochs.add(record.step, record.epoch, record.loss, record.accuracy)
        fields, line = {name: getattr(record, name) for name in COLUMNS[:7]}, io.StringIO()
        for name in COLUMNS[7:]:  # without a value where nothing was measured, or no epoch ended
            of, _, what = name.partition("_")
            fields[name] = getattr(measured if of == "validation" else self.epoch, what, None)
        if self.path.suffix == ".csv":
            csv.writer(line, lineterminator="\n").writerow(fields.values())
        else:
            odd = [name for name, value in fields.items() if isinstance(value, float) and not math.isfinite(value)]
            fields |= {**dict.fromkeys(odd), "norms": dict(record.norms)}  # JSON has null in place of what is no number
            line.write(json.dumps(fields, allow_nan=False) + "\n")
        self._waiting += line.getvalue().encode()
        try:
            end, lines = self._file.seek(0, os.SEEK_END), self._waiting
            try:
                while lines:
                    lines = lines[self._file.write(lines) :]
            except OSError:
                self._file.truncate(end)
                raise
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._waiting = b""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def check_new(path: Path, run: Path | None = None) -> None:
    """Raise InputError where a new run would write over a file or cannot, UsageError for a name without a format.

    The folder of the `run` need not be there yet.
    """
    _check_name(path)
    if run is not None and not is_there(run) and path.parent.absolute() == run.absolute():
        return
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0
        if not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written: there is no folder {path.parent}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written: nothing may be written in {path.parent}")
    if size:
        raise InputError(f"{path} exists: remove it, or choose another --log")


def _check_name(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UsageError(f"--log {path}: a log is a file that ends in {' or '.join(FORMATS)}")


def _kept_lines(path: Path, step: int) -> tuple[list[str], Epochs]:
    """The whole lines of a log up to a step, and the epoch that they leave under way."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a log: choose another --log") from error
    kept, epochs = list[str](), Epochs()
    for line in lines:
        if not line.endswith("\n") or line.startswith(f"{COLUMNS[0]},"):
            continue
        try:
            cells = json.loads(line) if path.suffix == ".jsonl" else dict(zip(COLUMNS, line.split(","), strict=False))
            if 0 < int(cells["step"]) <= step:
                kept.append(line)
                epochs.add(int(cells["step"]), *(float(cells[name]) for name in ("epoch", "loss", "accuracy")))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(f"{path}: is no log of a run: choose another --log") from error
    return kept, epochs


_ROUNDING = 1e-9


@dataclass(frozen=True)
class Epoch:
    """Means over the steps of an epoch (from 1), each of its examples before it was learned from.

    The loss is in nats, the accuracy the share of the counted positions whose prediction was right.
    """

    number: int
    loss: float
    accuracy: float


@dataclass
class Epochs:
    """The epoch that is under way; not `whole` where steps of it are not known, as after another log."""

    ended: int = 0
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    step: int = 0
    whole: bool = True

    def add(self, step: int, epoch: float, loss: float, accuracy: float) -> Epoch | None:
        """The epoch that a step ends, if it does and all of its steps are known.

        `epoch` is how often all examples have been seen after the step.
        """
        if step != self.step + 1 and math.isfinite(epoch):
            before = epoch * (step - 1) / step
            self.ended, self.losses, self.accuracies = math.floor(before + _ROUNDING), [], []
            self.whole = before - self.ended < _ROUNDING
        self.step = step
        self.losses.append(loss)
        self.accuracies.append(accuracy)
        if not math.isfinite(epoch) or math.floor(epoch) <= self.ended:
            return None
        self.ended, count, known = math.floor(epoch), len(self.losses), self.whole
        finished = Epoch(self.ended, math.fsum(self.losses) / count, math.fsum(self.accuracies) / count)
        self.losses, self.accuracies, self.whole = [], [], True
        return finished if known else None
