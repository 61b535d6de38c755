"""Runs in a process of its own: somebody's functions, or a program, within limits. Imports nothing of this package.

`python child.py FOLDER` reads `job.json` there, and `input.npz`; it writes `answer.npz` and `result.json`.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import difflib
import errno
import json
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

MOST_TEXT = 400
"""Characters of an error that are handed on."""


def main(folder: Path) -> None:
    """Do the job of a folder."""
    # what the program itself wrote, and nothing of the program is imported beside a learner's code
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    _limit(job)
    if "command" in job:
        for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores, and other programs do not
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        try:
            os.execvp(job["command"][0], job["command"])  # noqa: S606 - the learner's own program
        except OSError as error:
            _say(folder, {"": {"says": f"{job['command'][0]}: cannot be run: {error.strerror}"}})
    else:
        _run(folder, job)


SPARE = 4096
"""Processes and threads that the user may have besides those of now: far more than are let live, a last resort."""
CAP_SYS_RESOURCE = 24
"""The right of root to raise limits."""


def _limit(job: dict[str, Any]) -> None:
    """Take no more memory, time or disk than the job may; where the system knows no limits, time alone is kept."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most = {
        "RLIMIT_DATA": job["memory"],
        "RLIMIT_CPU": job["seconds"],
        "RLIMIT_FSIZE": job["disk"],
        "RLIMIT_NPROC": _tasks() + SPARE,
        "RLIMIT_CORE": 0,
    }
    for name, number in most.items():
        kind = getattr(resource, name, None)
        if kind is None or number is None:
            continue
        hard = resource.getrlimit(kind)[1]
        least = number if hard == resource.RLIM_INFINITY else min(number, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has some by name alone
            resource.setrlimit(kind, (least, least))  # the hard limit too: what is lowered cannot be raised again
    if sys.platform.startswith("linux"):
        _give_up_rights()


def _tasks() -> int:
    """Processes and threads of this user, which is what the system counts."""
    count = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc/self/task") else ():  # noqa: PTH112, PTH208 - without pathlib
        with contextlib.suppress(OSError):
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == os.getuid():  # noqa: PTH116 - without pathlib
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
    return count


def _give_up_rights() -> None:
    """End with the parent, get no rights by programs that give some (which could not be ended), raise no limit."""
    libc = ctypes.CDLL(None)
    for option, value in ((1, signal.SIGKILL), (38, 1), (24, CAP_SYS_RESOURCE)):  # death signal, no new rights, bounds
        libc.prctl(option, int(value), 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # capabilities(7), version 3, of this process
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: the lower 32, then the upper ones
    if libc.capget(header, sets) == 0:
        for i in range(3):
            sets[i] &= ~(1 << CAP_SYS_RESOURCE)
        libc.capset(header, sets)


def _run(folder: Path, job: dict[str, Any]) -> None:
    """Each function with the inputs, as new each time."""
    import numpy as np

    arrays: dict[str, Any] = {}
    failed: dict[str, Said] = {}
    try:
        sys.path.insert(0, str(Path(job["file"]).parent))
        names: dict[str, Any] = {"__name__": "exercise", "__file__": job["file"]}
        source = compile((folder / "source.py").read_bytes(), job["file"], "exec")
        exec(source, names)  # noqa: S102 - the learner's own file, in this process
    except BaseException as error:  # noqa: BLE001 - whatever a file does when it is loaded
        _say(folder, {"": _said(error, job["file"])})
        return
    for function in job["functions"]:
        inputs = _inputs(folder)
        try:
            result = _called(names, function, inputs)
            arrays |= {f"{function}/{i}": each for i, each in enumerate(_arrays(result, job["answers"]))}
        except BaseException as error:  # noqa: BLE001 - whatever a function does
            failed[function] = _said(error, job["file"], function, inputs)
    np.savez(folder / "answer.npz", **arrays)
    _say(folder, failed)


Said = dict[str, str]
"""Why there is no answer: what it `says`, and the `cause` where that is known."""


class _Wrong(Exception):  # noqa: N818 - said as it is
    """The fault of an answer, in words."""


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
        made = [np.asarray(part) for part in parts]
        if any(each.dtype.kind in "US" for each in made):
            raise _Wrong("returns texts: return numbers")
        # in the precision that they were computed in; whole ones and those of other kinds in float64
        return [each if each.dtype in ("float16", "float32") else each.astype("float64") for each in made]
    except (TypeError, ValueError) as error:
        raise _Wrong("returns what is no array of numbers: return NumPy arrays or lists of equal length") from error


def _said(error: BaseException, file: str, function: str = "", inputs: dict[str, Any] | None = None) -> Said:
    if isinstance(error, _Wrong):
        return {"says": str(error)}
    if isinstance(error, NotImplementedError):
        return {"says": f"{function or 'the function'} is not written yet: replace `raise NotImplementedError`"}
    if isinstance(error, MemoryError):
        return {"says": "takes more memory than it may"}
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return {"says": "writes a larger file than it may"}
    if isinstance(error, SyntaxError):
        return {"says": f"{_at(error.lineno)}SyntaxError: {error.msg}"}
    reached, place = None, error.__traceback__  # the place in the learner's file that was reached last
    while place is not None:
        reached = place if place.tb_frame.f_code.co_filename == file else reached
        place = place.tb_next
    where = _at(reached.tb_lineno if reached else None)
    found = None
    with contextlib.suppress(Exception):  # whatever comes of looking into somebody's code
        key = error.args[0] if isinstance(error, KeyError) and error.args else None
        for name, value in (inputs or {}).items():  # a name that is looked up in a dict of weights and not there
            if isinstance(key, str) and isinstance(value, dict) and key not in value and found is None:
                near = difflib.get_close_matches(key, value, 3, 0.3) or list(value)[:3]
                found = {"says": f"{name} has no {key!r}: it has {', '.join(near)} …"}
        found = found or (_shapes(error, reached) if reached else None)
    if found:
        return {**found, "says": where + found["says"]}
    text = ""
    with contextlib.suppress(Exception):  # an error that cannot even be said
        text = str(error)[:MOST_TEXT]
    return {"says": f"{where}{type(error).__name__}{f': {text}' if text else ''}"}


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


# Operands that do not go together, by their shapes: of the expression that failed, which Python knows to the column

PRODUCTS = ("matmul", "dot", "inner")
LONGEST = 40
"""Characters of an operand that is shown as it was written."""


def _shapes(error: BaseException, place: TracebackType) -> Said | None:
    """A product, or an operation cell by cell, of arrays whose shapes do not go together."""
    node = _failed(place) if isinstance(error, ValueError) else None
    pair = None if node is None else _operands(node)
    if node is None or pair is None:
        return None
    import numpy as np

    frame, codes = place.tb_frame, [compile(ast.Expression(each), "part", "eval") for each in pair]
    first, second = (np.asarray(eval(code, frame.f_globals, frame.f_locals)) for code in codes)  # noqa: S307 - their line
    texts = [ast.unparse(each) for each in pair]
    if isinstance(node, ast.Call) or isinstance(node.op, ast.MatMult):
        return _product(texts, first.shape, second.shape)
    sign = ast.unparse(node).removeprefix(texts[0]).removesuffix(texts[1]).strip()
    shown = " ".join(text if len(text) <= LONGEST else "…" for text in (texts[0], sign, texts[1]))
    says = f"`{shown}`: {_by(first.shape)} and {_by(second.shape)} do not fit cell by cell"
    fewer, more = sorted((first.shape, second.shape), key=len)
    if fewer in [more[:i] + more[i + 1 :] for i in range(len(more))]:
        return {"says": f"{says}: keep the axis that was summed over, with keepdims=True", "cause": "keepdims-missing"}
    return {"says": says}


def _failed(place: TracebackType) -> Any:
    """The expression that raised; None where it is none of two operands."""
    positions = list(place.tb_frame.f_code.co_positions())[place.tb_lasti // 2]
    first, last, begin, end = (each or 0 for each in positions)
    with open(Path(sys.argv[1]) / "source.py", "rb") as file:  # noqa: PTH123
        lines = file.read().splitlines()[first - 1 : last]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    node = ast.parse(b"(" + b"\n".join(lines) + b")", mode="eval").body
    return node if isinstance(node, ast.BinOp | ast.Call) else None


def _operands(node: Any) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in PRODUCTS:
        return None
    given = node.args if len(node.args) == 2 else [node.func.value, *node.args]
    return (given[0], given[1]) if len(given) == 2 else None


def _product(texts: list[str], first: tuple[int, ...], second: tuple[int, ...]) -> Said | None:
    """What is wrong with a product of matrices; None where its shapes go together."""
    if len(first) < 2 or len(second) < 2:
        return None
    a, b = (text if len(text) <= LONGEST else side for text, side in zip(texts, ("the left", "the right"), strict=True))
    says = f"`{a} @ {b}`: {_by(first)} times {_by(second)} does not go"
    if b.endswith(".T") and len(second) > 2:
        inner = b.removesuffix(".T")
        says += f", since .T turns all axes round, the heads too: swap the last two alone, {inner}.swapaxes(-1, -2)"
        return {"says": says, "cause": "transposed-all-axes"}
    if first[-1] == second[-2]:
        return {"says": f"{says}: the axes in front, as of the heads, have to be the same"}
    says += f": a row of the first has {first[-1]} numbers, a column of the second {second[-2]}"
    turned = "{}.T" if len(first) == len(second) == 2 else "{}.swapaxes(-1, -2)"
    if b.endswith(".T") and first[-1] == second[-1]:
        return {"says": f"{says}. Leave out the .T: {b.removesuffix('.T')} is in × out already", "cause": "transposed"}
    if second[-1] == first[-2]:
        return {"says": f"{says}. The other way round it goes: {b} @ {a}", "cause": "product-order"}
    if first[-1] == second[-1] and b.lower().startswith("k"):
        says += f". K is not transposed: for Q Kᵀ swap its last two axes, {turned.format(b)}"
        return {"says": says, "cause": "key-not-transposed"}
    if first[-1] == second[-1]:
        says += f". Should {b} be transposed, {turned.format(b)}, or is another one meant?"
        return {"says": says, "cause": "not-transposed"}
    if first[-2] == second[-2]:
        says += f". Should {a} be transposed, {turned.format(a)} @ {b}?"
        return {"says": says, "cause": "not-transposed"}
    return {"says": says}


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _say(folder: Path, failed: dict[str, Said]) -> None:
    (folder / "result.json").write_text(json.dumps(failed), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
