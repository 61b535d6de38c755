"""The checkpoints of a run, driven from outside: keys in, text of the screen out."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from training_runs import settings, trained, training

from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.checkpoints import Checkpoints, CheckpointsScreen, open_from, open_run
from tui_transformer.explorer.tools.runs import Examples
from tui_transformer.explorer.tools.train.screen import TrainScreen
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.learning.run import Run, checkpoints
from tui_transformer.model import Model
from tui_transformer.model.options import Framing, ModelOptions
from tui_transformer.session.view_state import Measure


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a checkpoint after each of its steps."""
    return trained(tmp_path_factory.mktemp("runs"), steps=10, save_every=1, learning_rate=0.03)


@asynccontextmanager
async def stepping_through(folder: Path, size: tuple[int, int] = WIDE) -> AsyncIterator[Explorer]:
    async with exploring(size) as explorer:
        open_run(explorer.parts.port, folder)
        await all_computed(explorer)
        yield explorer


async def all_computed(explorer: Explorer) -> CheckpointsScreen:
    """The screen, once every checkpoint is computed."""
    return await explorer.front(CheckpointsScreen, lambda screen: len(screen.run.heads) == len(screen.run.all))


def computed(explorer: Explorer) -> Checkpoints:
    return explorer.screen(CheckpointsScreen).run


async def test_every_checkpoint_shows_its_own_heads_and_loss(run):
    losses = {each.step: each.loss for each in Checkpoints.of(run).all}
    async with stepping_through(run) as explorer:
        # eight from the first to the last, side by side
        places = explorer.screen(CheckpointsScreen).side_by_side
        assert (len(places), places[0], places[-1]) == (8, 0, 10)
        for place in places:
            assert f"step {place}" in explorer.text
        # each
        await explorer.press("home")
        assert "step 0" in explorer.text
        for step, folder in enumerate(checkpoints(run)):
            assert f"decoder cross-attention · layer 0 · head 0 · step {step}" in explorer.text
            assert f"checkpoint {step + 1} of 11" in explorer.text
            now = computed(explorer)
            name = "decoder.0.cross_attention.weights"
            trace = Model.load(folder).trace(ids=now.sample.ids, decoder_ids=now.sample.decoder_ids)
            assert np.array_equal(now.heads[step].weights[name], trace[name])
            if step:
                match = re.search(rf"step {step} · loss ([\d.]+)", explorer.text)
                assert match is not None
                assert float(match[1]) == pytest.approx(losses[step], rel=0.01)
            await explorer.press("right")
        await explorer.press("left", "left")
        assert "checkpoint 9 of 11" in explorer.text
        # other heads, and kinds of attention
        before = explorer.text
        await explorer.press("]")
        assert "decoder cross-attention · layer 0 · head 1 · step 8" in explorer.text
        assert explorer.text != before
        await explorer.press("f")
        assert "encoder self-attention · layer 0 · head 1" in explorer.text
        await explorer.press("[", "f", "}")
        assert "decoder self-attention · layer 0 · head 0" in explorer.text


async def test_another_sentence_is_read_by_all_checkpoints(run):
    source = (run.parent / "pairs.txt").read_text().splitlines()[-1].partition("\t")[0]
    async with stepping_through(run) as explorer:
        before = computed(explorer)
        await explorer.prompt("slash", source)
        await explorer.until(lambda: computed(explorer) is not before)
        now = (await all_computed(explorer)).run
        model = Model.load(checkpoints(run)[-1])
        writer = Writer(model, Settings(greedy=True), source=model.encode(source).ids)
        assert now.sample.ids == writer.source
        *_, written = writer.run(writer.begin())
        assert now.sample.decoder_ids == written.ids[: len(now.sample.decoder_ids)]
        assert {heads.sample for heads in now.heads.values()} == {now.sample}


async def test_enter_explores_a_checkpoint_at_its_head_and_d_compares_it_with_the_last(run):
    name = "decoder.0.cross_attention.weights"
    async with stepping_through(run) as explorer:
        await explorer.leave("home", "right", "right", "]", "enter")
        assert explorer.session.model.name == "run at step 2"
        assert (explorer.stop, explorer.position.place.head) == (name, 1)
        saved = Model.load(checkpoints(run)[2])
        trace = saved.trace(ids=explorer.session.encoding.ids, decoder_ids=explorer.session.decoder_encoding.ids)
        assert np.array_equal(explorer.session.trace[name], trace[name])
        # the run of what is explored, at its last
        open_from(explorer.parts.port)
        await explorer.shown("checkpoint 11 of 11")
        assert (await all_computed(explorer)).run.folder == run
        await explorer.press("d")
        assert "this is the last checkpoint" in explorer.messages[-1]
        # another one
        await explorer.leave("home", "d")
        assert explorer.session.overlay.label == "step 10"
        assert explorer.session.comparison.differences[name].largest > 0
        assert "step 10" in explorer.text


async def test_a_run_is_suggested_where_there_is_one(run, here):
    (here / "runs" / "empty").mkdir(parents=True)
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("F")
        assert explorer.focused_input.value == ""
        assert "ctrl+l trains a model and makes one" in explorer.text
        await explorer.press("escape")
        shutil.copytree(run, here / "runs" / "made")
        await explorer.press("F")
        assert explorer.focused_input.value == str(Path("runs/made"))
        await explorer.press("enter")
        assert isinstance(explorer.app.screen, CheckpointsScreen)


async def test_a_folder_without_checkpoints_and_a_damaged_one_are_said(run, tmp_path):
    async with exploring(WIDE) as explorer:
        await explorer.open("checkpoints")
        await explorer.answer(str(tmp_path))
        assert "name the folder of a training run" in explorer.text
        for step in (0, 1):
            folder = tmp_path / f"checkpoints/{step:06d}"
            folder.mkdir(parents=True)
            for file in checkpoints(run)[step].iterdir():
                (folder / file.name).write_bytes(file.read_bytes())
        (tmp_path / "checkpoints/000001/model.safetensors").write_bytes(b"no weights")
        await explorer.answer(str(tmp_path))
        await explorer.front(CheckpointsScreen, lambda screen: 0 in screen.run.heads)
        assert "model.safetensors" in explorer.messages[-1]
        await explorer.press("home")
        assert "head 0 · step 0" in explorer.text
        await explorer.until(lambda: computed(explorer).unread == {1})
        shown = [line for line in explorer.text.splitlines() if "rows queries" in line]
        await explorer.press("end")  # nothing of another checkpoint stands under the name of this one
        assert "head 0 · step 1" in explorer.text
        assert shown
        assert "rows queries" not in explorer.text
        assert "it cannot be read" in explorer.screen(CheckpointsScreen).texts().detail[1]


async def test_it_fits_every_size(run, colors):
    async with stepping_through(run, (2, 3)) as explorer:
        for place, size in enumerate([(2, 3), (5, 3), SMALL, (60, 20), NARROW, MEDIUM]):
            await explorer.resize(*size)
            await explorer.press("left", "]")
            if size[1] > 3:
                assert f"step {9 - place}" in explorer.text
        await explorer.resize(*WIDE)
        assert "checkpoint 5 of 11" in explorer.text


async def test_the_checkpoints_of_a_run_that_is_open(tmp_path):
    async with training(trained(tmp_path, made=4)) as explorer:
        await explorer.keys("F")
        await all_computed(explorer)
        assert "checkpoint 3 of 3" in explorer.text
        await explorer.press("escape")
        assert isinstance(explorer.app.screen, TrainScreen)


async def test_the_sample_is_explored_and_not_a_sentence_of_the_batch_or_what_was_broken_before(run):
    options = ModelOptions("story", framing=Framing(bracket=True))
    session = open_session(options, "the fox", batch=("the fox", "a crow found it"), item=0)
    session = session.with_breaks("no-scale").with_measure(Measure("logit", (300,)))
    async with exploring(WIDE, session=session) as explorer:
        open_run(explorer.parts.port, run)
        sample = (await all_computed(explorer)).run.sample
        await explorer.leave("enter")
        explored = explorer.session
        assert (explored.encoding.ids, explored.decoder_encoding.ids) == (sample.ids, sample.decoder_ids)
        assert (explored.breaks, explored.measure) == ((), None)


def test_the_decoder_of_the_sample_begins_as_in_training(tmp_path):
    name = str(Path(__file__).parents[3] / "references" / "bart")
    of_run = replace(settings(tmp_path, model=name), sizes={})
    begun = Run.start(tmp_path / "run", of_run)
    begun.close()
    every = Checkpoints.of(begun.folder)
    sample = every.compute(0, Mock()).sample
    assert sample == Examples(begun.trainer.data).sample
    assert sample.decoder_ids[0] == begun.trainer.model.config.start_id != begun.trainer.model.vocabulary.begin_id


async def test_over_a_training_another_run_is_stepped_through_and_what_is_explored_is_seen(tmp_path: Path, run: Path):
    own = trained(tmp_path, made=4)
    async with training(own) as explorer:
        await explorer.keys("o")
        await all_computed(explorer)
        await explorer.prompt("o", str(run))
        await all_computed(explorer)
        assert "step 10" in explorer.text
        assert len(computed(explorer).all) == 11
        await explorer.press("escape")
        assert isinstance(explorer.app.screen, TrainScreen)
        await explorer.keys("o")
        await all_computed(explorer)
        await explorer.press("left", "enter")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.settled()
        assert explorer.session.model.name == "run at step 2"
        await explorer.shown("run paused", "opens it")
