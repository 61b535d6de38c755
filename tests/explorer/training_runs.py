"""Runs that take a moment, for tests of the Train and the checkpoint screens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from driving import WIDE, Explorer, exploring

from tui_transformer.explorer.tools.train.driver import Training
from tui_transformer.explorer.tools.train.screen import TrainScreen
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.log import Log
from tui_transformer.learning.run import Run
from tui_transformer.learning.settings import Settings

SMALL = {"d_model": 8, "heads": 2, "layers": 1}
TEXTS = {"pairs": "dates", "classify": "question"}


def settings(folder: Path, task: str = "pairs", **more: Any) -> Settings:
    """Settings of a run that is made in a second."""
    file = folder / f"{task}.txt"
    text = "".join(f"{line}\n" for line in lines_of(TEXTS.get(task, "story"), 40))
    file.write_text(text, encoding="utf-8")
    usual: dict[str, Any] = {"steps": 6, "batch": 4, "length": 16, "warm_up": 1, "save_every": 2, "device": "cpu"}
    return Settings(task, str(file), sizes=SMALL, **usual | more)


def trained(folder: Path, task: str = "pairs", made: int | None = None, **more: Any) -> Path:
    """The folder of a run with its checkpoints and its log, made without any screen."""
    run = Run.start(folder / "run", settings(folder, task, **more))
    log = Log(run.folder / "log.jsonl", 0)
    while not run.trainer.done and run.trainer.step != made:
        run.step(log, lambda *_: None)
    log.close()
    run.close()
    return run.folder


def training_of(explorer: Explorer) -> Training:
    job = explorer.app.background.job
    assert job is not None
    return job


def screen_of(explorer: Explorer) -> TrainScreen:
    return explorer.screen(TrainScreen)


@asynccontextmanager
async def training(run: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[Explorer]:
    """The Train screen of a run, paused."""
    async with exploring(size) as explorer:
        await explorer.open("train")
        await explorer.write(str(run))
        await explorer.keys("enter")
        await explorer.until(lambda: isinstance(explorer.app.screen, TrainScreen))
        await explorer.shown("paused" if training_of(explorer).status.step < 6 else "are made")
        yield explorer


async def steps(explorer: Explorer, count: int) -> None:
    """Make steps one by one, and wait for each."""
    for _ in range(count):
        wanted = training_of(explorer).status.step + 1
        await explorer.keys("n")
        await explorer.until(lambda wanted=wanted: at_rest(explorer, wanted) and screen_of(explorer).settled)


def at_rest(explorer: Explorer, step: int) -> bool:
    """Whether a step is made and nothing else is being done."""
    status = training_of(explorer).status
    return status.step == step and status.state != "training"
