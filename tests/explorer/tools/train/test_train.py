"""The Train screen, driven from outside: keys in, text of the screen out, and what lies in the run's folder."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest
from driving import MEDIUM, NARROW, WIDE, exploring
from training_runs import at_rest, screen_of, settings, steps, trained, training, training_of

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.tools.runs import Snapshots
from tui_transformer.explorer.tools.train import screen as train
from tui_transformer.explorer.tools.train.panel import LEAST, MOST, SHARE, Throttle
from tui_transformer.explorer.tools.train.screen import TrainingLine, TrainScreen
from tui_transformer.learning.run import STATE, Run, checkpoints
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model import Model

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run of six steps that has made none."""
    return trained(tmp_path, made=0)


def logged(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


async def test_ctrl_c_says_which_key_quits(begun):
    async with training(begun) as explorer:
        await explorer.press("ctrl+c")
        assert explorer.messages[-1] == "ctrl+q quits the program"
    async with exploring(preferences=Preferences(keys={"quit": "left_square_bracket"})) as explorer:
        await explorer.press("ctrl+c")
        await explorer.press("g", "m")
        assert re.search(r"\d  \[ quits the program ", explorer.text)


async def test_single_steps_are_those_of_the_loop_are_drawn_and_are_kept_when_one_quits(begun, tmp_path):
    async with training(begun) as explorer:
        await steps(explorer, 1)
        # gradient norms for each layer
        record = training_of(explorer).status.record
        for layer in ("embedding", "encoder.0", "decoder.0", "output"):
            assert re.search(rf"{layer} +█", explorer.text), layer
        total = math.sqrt(sum(norm**2 for norm in record.norms.values()))
        assert total == pytest.approx(record.gradient_norm)
        # an output that is judged
        output = training_of(explorer).snapshots.outputs[0]
        assert output.given[:4] in explorer.text
        assert ("right" if output.right else "wrong") in explorer.text
        # saved by hand
        await explorer.keys("ctrl+s")
        await explorer.until(lambda: training_of(explorer).status.saved == 1)
        # a head, that of the model at its step
        await steps(explorer, 1)
        await explorer.shown("decoder cross-attention · layer 0 · head 0", "─ step 2 ─")
        heads = training_of(explorer).snapshots.heads
        saved = Model.load(checkpoints(begun)[-1])
        trace = saved.trace(ids=heads.sample.ids, decoder_ids=heads.sample.decoder_ids)
        for name, weights in heads.weights.items():
            assert np.array_equal(weights, trace[name]), name
        await explorer.keys("]")
        await explorer.shown("decoder cross-attention · layer 0 · head 1")
        await explorer.keys("f")
        await explorer.shown("encoder self-attention · layer 0 · head 1")
        words = [saved.word(token) for token in heads.sample.ids]
        assert all(word in explorer.text for word in words)
        # the steps, and the end
        await steps(explorer, 1)
        assert "step           3 of 6" in explorer.text
        losses = [entry["loss"] for entry in logged(begun)]
        await explorer.app.screen.run_action("quit")
        await explorer.until(lambda: explorer.app._exit)
        assert training_of(explorer).status.state == "ended"
    alone = Run.start(tmp_path / "alone", settings(tmp_path))
    assert losses == [alone.trainer.advance().loss for _ in range(3)]
    assert [int(path.name) for path in checkpoints(begun)] == [0, 1, 2, 3]
    Run.resume(begun, {}).close()  # the folder is free again


async def test_the_learning_rate_is_changed_from_the_next_step_on_and_space_trains_to_the_end(tmp_path):
    run = trained(tmp_path, "next-word", made=0, steps=10, schedule="constant", learning_rate=0.001)
    async with training(run) as explorer:
        await steps(explorer, 1)
        assert training_of(explorer).snapshots.outputs[0].given[:4] in explorer.text  # one that is not judged
        await explorer.keys("+")
        await steps(explorer, 1)
        held = threading.Event()
        training_of(explorer)._commands.put(("", lambda: held.wait(20)))  # keys are pressed faster than it is told
        await explorer.keys("-", "-")
        assert "learning rate 0.0005 from the next step on" in explorer.messages
        held.set()
        await steps(explorer, 1)
        await explorer.prompt(",", "none")
        assert "'none' is not a number" in explorer.text
        await explorer.answer("0.25")
        await steps(explorer, 1)
        assert "0.25 · constant from 0.25" in explorer.text
        assert [entry["learning_rate"] for entry in logged(run)] == [0.001, 0.002, 0.0005, 0.25]
        # to the end, and the curves grow
        await explorer.keys("N")
        await explorer.shown("all 10 steps are made", "Loss by step", "validation", "Accuracy by step")
        curve = training_of(explorer).curves.of["loss"].points
        assert curve[0] == tuple(range(1, 11))
        assert curve[1] == tuple(entry["loss"] for entry in logged(run))
        await explorer.keys("N", "n")
        assert "close the run, and open it again with more steps" in explorer.messages[-1]
    assert [int(path.name) for path in checkpoints(run)] == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("task", TASKS)
def test_outputs_are_made_for_every_task_and_judged_where_one_is_right(tmp_path, task):
    run = Run.start(tmp_path / "run", settings(tmp_path, task))
    snapshots = Snapshots(run.trainer)
    snapshots.now()
    run.trainer.advance()
    snapshots.now()
    assert [output.step for output in snapshots.outputs] == [1, 0]
    judged = task in ("pairs", "classify", "masked-word")
    assert all((output.right is not None) == judged for output in snapshots.outputs)
    run.close()


async def test_a_run_goes_on_where_it_was_with_its_curves(tmp_path):
    run = trained(tmp_path, made=4)
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("ctrl+l")
        assert "runs/question" in explorer.text  # the text of the model that is open
        await explorer.write(str(run))
        assert "pairs on pairs.txt · step 4 of 6" in explorer.text
        await explorer.keys("enter")
        await explorer.until(lambda: isinstance(explorer.app.screen, TrainScreen))
        await explorer.shown("step           4 of 6")
        assert training_of(explorer).curves.of["loss"].points[0] == (1, 2, 3, 4)
        await steps(explorer, 1)
    assert [entry["step"] for entry in logged(run)] == [1, 2, 3, 4, 5]


async def test_a_run_that_goes_on_says_what_was_measured_before(tmp_path):
    run = trained(tmp_path, "classify", made=4, batch=16, label_smoothing=0.1)
    rows = logged(run)
    ended, validated = (
        [row for row in rows if row[name] is not None][-1] for name in ("epoch_loss", "validation_loss")
    )
    async with training(run) as explorer:
        for count in range(2):
            await steps(explorer, count)
            await explorer.shown(f"epoch          {rows[-1]['epoch'] + count * rows[0]['epoch']:.2f} ")
            said = re.sub(r" +", " ", explorer.text)
            assert re.search(
                rf"last epoch {ended['epoch_loss']:.4f} · \S+ % · epoch {math.floor(ended['epoch'])} ", said
            )
            assert re.search(rf"validation {validated['validation_loss']:.4f} · \S+ % · step 4 ", said)
            assert "perplexity – " in said  # the loss is no cross-entropy of the words alone


async def test_training_pauses_goes_on_and_goes_on_while_a_copy_is_explored(tmp_path):
    run = trained(tmp_path, made=0, steps=100_000, save_every=1_000_000)
    async with training(run) as explorer:
        await explorer.keys("N")
        await explorer.until(lambda: training_of(explorer).status.step > 3)
        # a pause, after the step
        await explorer.keys("N")
        await explorer.shown("paused")
        paused_at = training_of(explorer).status.step
        await explorer.pilot.pause(0.05)
        assert training_of(explorer).status.step == paused_at
        await explorer.shown(f"step           {paused_at:,} of 100,000")
        await explorer.keys("N")
        await explorer.until(lambda: training_of(explorer).status.step > paused_at)
        # a copy
        await explorer.keys("E")
        await explorer.shown("training goes on meanwhile")
        await explorer.keys("enter")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.settled()
        model = explorer.session.model
        assert re.fullmatch(r"run at step [\d,]+", model.name)
        assert explorer.stop == "decoder.0.cross_attention.weights"
        before, at = {name: value.copy() for name, value in model.weights.held.items()}, training_of(explorer).status
        await explorer.press("N")
        await explorer.until(lambda: training_of(explorer).status.step > at.step + 2)
        assert all(np.array_equal(model.weights.held[name], value) for name, value in before.items())
        again = Model.load(model.folder, device="cpu").trace(ids=(1, 2), decoder_ids=(1,))  # as a line for the shell
        assert all(np.array_equal(again[name], value) for name, value in before.items())
        # back to the run, and the end of it
        explorer.main.query_one(TrainingLine).look()
        await explorer.shown("run training · ctrl+l opens it · step")
        train.open_from(explorer.parts.port)
        await explorer.until(lambda: isinstance(explorer.app.screen, TrainScreen))
        await explorer.keys("escape")
        await explorer.shown("training goes on in the background")
        await explorer.keys("down", "down", "enter")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        assert not training_of(explorer).alive
        await explorer.until(lambda: not explorer.main.query(TrainingLine))


async def test_what_goes_wrong_with_a_step_is_said_and_nothing_is_lost(begun):
    async with training(begun) as explorer:
        # a step that takes long
        trainer, held = training_of(explorer).run.trainer, threading.Event()
        advance = trainer.advance

        def slowly():
            held.wait(20)
            return advance()

        with patch.object(trainer, "advance", slowly):
            await explorer.keys("n")
            await explorer.keys("]", "]", "}")
            assert training_of(explorer).status.step == 0
            held.set()
            await explorer.until(lambda: at_rest(explorer, 1))
        # a disk that is full
        with patch("tui_transformer.learning.run.write_whole", side_effect=FULL):
            await explorer.keys("ctrl+s")
            await explorer.shown("No space left on device", "step 0 is whole")
            assert "is saved in" not in str(explorer.messages)
            await explorer.app.screen.run_action("quit")
            await explorer.until(lambda: screen_of(explorer).closing is None)
            assert not explorer.app._exit
            assert training_of(explorer).alive
        await explorer.keys("ctrl+s")
        await explorer.until(lambda: "is saved in" in str(explorer.messages))
        assert training_of(explorer).status.saved == 1
        assert not training_of(explorer).status.problem
        # a loss that is no number
        wrong = InputError("step 2: NaN began here: use a smaller --learning-rate")
        with patch("tui_transformer.learning.loop.Trainer.advance", side_effect=wrong):
            await explorer.keys("N")
            await explorer.shown("step 2: NaN began here: use a smaller learning rate", "paused")
        await steps(explorer, 1)
        assert "NaN began here" not in explorer.text


async def test_a_rate_that_was_set_where_all_is_saved_is_kept_and_a_last_step_that_was_not_saved_is_the_last(tmp_path):
    run = trained(tmp_path, made=4)
    async with training(run) as explorer:
        await explorer.keys("+")
        await explorer.until(lambda: training_of(explorer).status.rate == 0.002)
        await explorer.app.screen.run_action("quit")
        await explorer.until(lambda: not training_of(explorer).alive)
    assert json.loads((run / "checkpoints/000004" / STATE).read_text())["learning_rate"] == 0.002
    async with training(run) as explorer:
        await explorer.shown("from 0.002")
        with patch("tui_transformer.learning.run.write_whole", side_effect=FULL):
            await explorer.keys("N")
            await explorer.shown("No space left on device", "all 6 steps are made")
        await explorer.keys("N")
        assert any("open it again with more steps" in said for said in explorer.messages)


async def test_the_screen_of_a_run_that_was_left_while_it_was_opened_goes_with_it(tmp_path):
    run = trained(tmp_path, made=4)
    async with exploring(WIDE) as explorer:
        await explorer.open("train")
        await explorer.write(str(run))
        held, resume = threading.Event(), Run.resume
        with patch.object(Run, "resume", side_effect=lambda *of: held.wait(60) and resume(*of)):
            await explorer.keys("enter", "escape")
            assert explorer.app.screen is explorer.main
            train.open_from(explorer.parts.port)
            await explorer.until(lambda: isinstance(explorer.app.screen, TrainScreen))
            held.set()
            await explorer.until(lambda: not training_of(explorer).alive)
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.shown("the run is closed")


async def test_the_form_says_what_is_wrong_and_writes_a_built_in_text(here):
    async with exploring(WIDE) as explorer:
        await explorer.open("train")
        assert "dates as people write them" in explorer.text
        form = explorer.app.screen
        usual = explorer.focused_input.value
        (here / "full").mkdir()
        (here / "full" / "notes.txt").write_text("mine")
        await explorer.write("full")
        await explorer.shown("choose another run folder")
        await explorer.write(usual)
        await explorer.fill("steps", "x")
        assert "steps 'x' is not a whole number" in explorer.text
        await explorer.fill("steps", "4")
        await explorer.fill("heads", "3")
        await explorer.keys("enter")
        await explorer.shown("heads")
        await explorer.until(lambda: explorer.app.background.job is not None and not explorer.app.background.job.alive)
        await explorer.shown("d_model 64 is not divisible by 3 heads")
        assert explorer.app.screen is form
        for key, value in {"heads": "2", "d_model": "8", "batch": "2"}.items():
            await explorer.fill(key, value)
        await explorer.keys("ctrl+s")
        await explorer.until(lambda: isinstance(explorer.app.screen, TrainScreen))
        await explorer.shown("step           0 of 4")
    assert (here / "runs/dates/dates.txt").read_text().count("\t") == 5000
    assert (here / "runs/dates/run.json").exists()


async def test_the_steps_of_a_run_that_was_named_before_are_not_those_of_a_new_one(begun, here):
    async with exploring(WIDE) as explorer:
        await explorer.open("train")
        for name, steps in {"run": "6", "run2": "1500", "run ": "6", "runs": "1500"}.items():
            await explorer.write(name)
            assert explorer.app.screen.query_one("#steps").value == steps, name
        await explorer.fill("steps", "8")
        await explorer.fill("folder", "run")
        assert explorer.app.screen.query_one("#steps").value == "8"


async def test_every_part_is_reached_at_every_size_also_without_colour(begun, no_colors):
    async with training(begun) as explorer:
        await steps(explorer, 2)
        for text in ("Loss by step", "Accuracy by step", "encoder.0", "cross-attention", "wrong"):
            assert text in explorer.text
        panel = screen_of(explorer).panel
        async for size in explorer.sizes(MEDIUM, NARROW, (60, 20), (40, 12), (5, 3)):
            seen, others = set(), panel.others
            for _ in others:
                await explorer.keys("tab")
                seen.add(panel.part)
                chosen = "[layers]" if panel.part == "norms" else f"[{panel.part}]"
                assert chosen in explorer.text or size == (5, 3)
                if size == NARROW:
                    assert re.search(r"step +2 of 6", explorer.text)
            assert seen == set(others), size
            await explorer.resize(*WIDE)
            assert "Gradient norm by layer" in explorer.text


def test_a_signal_while_training_saves(tmp_path):
    run = trained(tmp_path, made=0, steps=100_000, save_every=1_000_000)
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from training_runs import training, training_of\n"
        "async def main():\n"
        "    async with training(Path(sys.argv[1])) as explorer:\n"
        "        await explorer.keys('N')\n"
        "        await explorer.until(lambda: training_of(explorer).status.step > 2)\n"
        "        print('training', flush=True)\n"
        "        await explorer.until(lambda: explorer.app._exit)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(run)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "training\n"
        program.send_signal(signal.SIGTERM)
        program.wait(timeout=20)
    newest = checkpoints(run)[-1]
    assert int(newest.name) > 2
    assert (newest / STATE).exists()
    assert logged(run)[-1]["step"] == int(newest.name)


@pytest.mark.parametrize(("cost", "wait"), [(0.0, LEAST), (0.02, 0.02 / SHARE), (10.0, MOST)])
def test_the_next_drawing_waits_for_its_share_of_the_time(cost, wait, monkeypatch):
    now, spent = [0.0], [0.0]
    monkeypatch.setattr(f"{Throttle.__module__}.time", Mock(monotonic=lambda: now[0], thread_time=lambda: spent[0]))
    throttle = Throttle()
    assert throttle.due()
    spent[0], now[0] = cost, wait - 0.001
    assert not throttle.due()
    now[0] = wait + 0.001
    assert throttle.due()
