"""The list of exercises, and the way from each to its step."""

from __future__ import annotations

from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.course.exercise import Progress, open_course, progress_path, write_progress
from tui_transformer.course.sources import step_of
from tui_transformer.model import Model

COURSE = open_course()


async def test_a_key_opens_the_step_of_the_exercise_under_the_cursor_and_undo_goes_back():
    async with exploring(SMALL, model="encoder") as explorer:
        for size, key in ((SMALL, "x"), (NARROW, "x"), (MEDIUM, "E"), (WIDE, "x")):
            await explorer.resize(*size)
            await explorer.press("C", "g", *["down"] * 4, key)
            assert explorer.session.model.name == "question"
            assert explorer.session.text == COURSE.find("scores").text
            assert explorer.stop == "encoder.0.self_attention.scaled"
            await explorer.press("u")
            assert explorer.session.model.name == "encoder"
        await explorer.press("C", "G", "enter")
        exercise = COURSE.exercises[-1]
        assert explorer.session.model.name == exercise.model
        assert explorer.stop == step_of(exercise, explorer.session.trace.program)


async def test_the_first_that_is_not_done_is_under_the_cursor_and_its_task_is_read():
    write_progress(progress_path(), "", Progress(frozenset({"tokenize", "embed"})))
    async with exploring(WIDE, model="encoder") as explorer:
        await explorer.press("C")
        assert "2 of 15 done" in explorer.text
        assert "exercise start positions" in explorer.text
        assert COURSE.find("positions").task.split()[0] in explorer.text
        assert explorer.text.count("✓") == 2


def test_every_exercise_is_about_a_step_of_its_model():
    for exercise in COURSE.exercises:
        trace = Model.load(exercise.model).trace(exercise.text)
        assert step_of(exercise, trace.program) in trace.program.by_name, exercise.name
