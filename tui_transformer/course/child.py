"""Runs in a process of its own: somebody's functions, or a program, within limits. Imports nothing of this package.

`python child.py FOLDER` reads `job.json` there, and `input.npz`; it writes `answer.npz` and `result.json`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

MOST_TEXT = 400
"""Characters of an error that are handed on."""


def main(folder: Path) -> None:
    """Do the job of a folder."""
    # what the program itself wrote, and nothing of the program is imported beside a learner's code
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    _limit(job)
    if "command" in job:
        _become(folder, job["command"])
    else:
        _run(folder, job)


def _limit(job: dict[str, Any]) -> None:
    """Take no more memory, time or disk than the job may; where the system knows no limits, time alone is kept."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, most in (("RLIMIT_DATA", "memory"), ("RLIMIT_CPU", "seconds"), ("RLIMIT_FSIZE", "disk")):
        number = getattr(resource, kind, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        least = job[most] if hard == resource.RLIM_INFINITY else min(job[most], hard)
        resource.setrlimit(number, (least, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _become(folder: Path, command: list[str]) -> None:
    try:
        os.execvp(command[0], command)  # noqa: S606 - the learner's own program
    except OSError as error:
        _say(folder, {"": f"{command[0]}: cannot be run: {error.strerror}"})


def _run(folder: Path, job: dict[str, Any]) -> None:
    """Each function with the inputs, as new each time."""
    import numpy as np

    arrays: dict[str, Any] = {}
    failed: dict[str, str] = {}
    try:
        names = _loaded(Path(job["file"]))
    except BaseException as error:  # noqa: BLE001 - whatever a file does when it is loaded
        _say(folder, {"": _said(error, job["file"])})
        return
    for function in job["functions"]:
        try:
            result = _called(names, function, _inputs(folder))
            arrays |= {f"{function}/{i}": each for i, each in enumerate(_arrays(result, job["answers"]))}
        except BaseException as error:  # noqa: BLE001 - whatever a function does
            failed[function] = _said(error, job["file"], function)
    np.savez(folder / "answer.npz", **arrays)
    _say(folder, failed)


class _Wrong(Exception):  # noqa: N818 - said as it is
    """The fault of an answer, in words."""


def _loaded(file: Path) -> dict[str, Any]:
    sys.path.insert(0, str(file.parent))
    names: dict[str, Any] = {"__name__": "exercise", "__file__": str(file)}
    exec(compile(file.read_bytes(), str(file), "exec"), names)  # noqa: S102 - the learner's own file, in this process
    return names


def _inputs(folder: Path) -> dict[str, Any]:
    """The inputs by name: arrays, numbers, texts, words; weights as a dict."""
    import numpy as np

    inputs: dict[str, Any] = {}
    with np.load(folder / "input.npz", allow_pickle=False) as file:
        for key in file.files:
            array = file[key]
            name, _, below = key.partition("/")
            if below:
                inputs.setdefault(name, {})[below] = array
            elif array.ndim == 0:
                inputs[name] = array.item()
            else:
                inputs[name] = array.tolist() if array.dtype.kind == "U" else array
    return inputs


def _called(names: dict[str, Any], function: str, inputs: dict[str, Any]) -> Any:
    if not callable(names.get(function)):
        raise _Wrong(f"has no function {function}: begin it with `def {function}({', '.join(inputs)}):`")
    return names[function](**inputs)


def _arrays(result: Any, answers: list[str]) -> list[Any]:
    """An array for every answer."""
    import numpy as np

    if result is None:
        raise _Wrong(f"returns nothing: end the function with `return {', '.join(answers)}`")
    if isinstance(result, dict):
        if missing := [name for name in answers if result.get(name) is None]:
            raise _Wrong(f"returns no {missing[0]}: return {', '.join(answers)}")
        result = tuple(result[name] for name in answers)
    parts = [result] if len(answers) == 1 and not (isinstance(result, tuple) and len(result) == 1) else list(result)
    if len(parts) != len(answers):
        raise _Wrong(f"returns {len(parts)} values: return {len(answers)}, {', '.join(answers)}")
    try:
        return [_floats(np.asarray(part)) for part in parts]
    except (TypeError, ValueError) as error:
        raise _Wrong("returns what is no array of numbers: return NumPy arrays or lists of equal length") from error


def _floats(array: Any) -> Any:
    """Numbers in the precision that they were computed in; whole ones and those of other kinds in float64."""
    return array if array.dtype in ("float16", "float32") else array.astype("float64")


def _said(error: BaseException, file: str, function: str = "") -> str:
    """One line."""
    if isinstance(error, _Wrong):
        return str(error)
    if isinstance(error, NotImplementedError):
        return f"{function or 'the function'} is not written yet: replace `raise NotImplementedError`"
    if isinstance(error, MemoryError):
        return "takes more memory than it may"
    line = error.lineno if isinstance(error, SyntaxError) else _line(error, file)
    text = error.msg if isinstance(error, SyntaxError) else _text(error)
    where = f"line {line}: " if line else ""
    return f"{where}{type(error).__name__}{f': {text}' if text else ''}"


def _text(error: BaseException) -> str:
    try:
        return str(error)[:MOST_TEXT]
    except Exception:  # noqa: BLE001 - an error that cannot even be said
        return ""


def _line(error: BaseException, file: str) -> int | None:
    """The last line of the learner's file that was reached."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else None


def _say(folder: Path, failed: dict[str, str]) -> None:
    (folder / "result.json").write_text(json.dumps(failed), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
