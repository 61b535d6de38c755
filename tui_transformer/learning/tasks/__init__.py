"""The tasks that a model can be trained for, one a file: each turns the lines of a file into examples."""

from importlib import import_module

from tui_transformer.errors import UsageError
from tui_transformer.learning.tasks.base import Task

TASKS = ("next-word", "next-character", "masked-word", "classify", "pairs")


def task_of(name: str) -> Task:
    """The task of a name in `TASKS`: its file has it as `TASK`.

    Raises:
        UsageError: There is no such task.
    """
    if name not in TASKS:
        raise UsageError(f"no task is called {name[:40]!r}: use {', '.join(TASKS)}")
    task = import_module(f"{__name__}.{name.replace('-', '_')}").TASK
    assert isinstance(task, Task)  # noqa: S101 - a file that breaks the rule above
    return task


__all__ = ["TASKS", "Task", "task_of"]
