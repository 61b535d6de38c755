"""The program as it is, in a storm: it may quit only when it is told so, and may write only below its folder."""

from __future__ import annotations

import faulthandler
import gc
import importlib.metadata
import importlib.util
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from textual.app import App
from textual.message_pump import MessagePump

from tui_transformer.session.tour_stop import OF_A_PACKAGE

HERE = str(Path.cwd().resolve().parent)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}
MAY_QUIT, THREADS, STATE, HELD = "may-quit", "threads", "front", "held"
"""Files beside the program's folder: leave to quit; where one signal writes what each thread does, and another
what the program has in front and waits for; the wish to know, once, what its memory holds."""

AT_REST = "the engine computes nothing"

MOST = 40
"""Types of objects that are counted, and arrays that are listed."""

DEVICES = ("/dev/null", "/dev/tty")


def _find_no_packages() -> None:
    """Keep models of installed packages out of lists and tours: their size would say how much memory is taken."""
    find = importlib.util.find_spec

    def find_others(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in OF_A_PACKAGE else find(name, package)

    importlib.metadata.distributions = lambda *_, **__: iter(())  # type: ignore[assignment]
    importlib.util.find_spec = find_others


def _stay_inside(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & WRITING and isinstance(path, str | bytes):
            _check(os.fsdecode(path))
    elif event in CHANGING and isinstance(arguments[0], str | bytes):
        _check(os.fsdecode(arguments[0]))


def _check(path: str) -> None:
    if path not in DEVICES and not os.path.realpath(path).startswith(HERE):
        raise PermissionError(13, "a storm writes only below its folder", path)


class _Once:
    """Refuses to be entered while it is: a signal comes while another is answered."""

    _inside = False

    def __enter__(self) -> None:
        if _Once._inside:
            raise RuntimeError
        _Once._inside = True

    def __exit__(self, *_: object) -> None:
        _Once._inside = False


def _held() -> str:
    """The most frequent types of objects, the largest arrays, and what the system says of memory."""
    import numpy as np

    from tui_transformer.engine.backend import POOL
    from tui_transformer.engine.pool import Lease

    everything = gc.get_objects()
    parts = {id(part): part for each in everything for part in gc.get_referents(each) if type(part) is np.ndarray}
    arrays = sorted((part.nbytes, part.shape) for part in parts.values() if part.base is None)[::-1]
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    memory = [" ".join(line.split()) for line in status if line.startswith(("VmHWM", "VmRSS", "RssAnon"))]
    counts = Counter(type(each).__name__ for each in everything).most_common(MOST)
    blocks = f"{sys.getallocatedblocks()} blocks, {len(everything)} objects"
    leased = sum(each._memory.nbytes for each in everything if type(each) is Lease)
    idle = sum(size * count for size, count in POOL.idle.items())
    total = f"{len(arrays)} arrays of {sum(size for size, _ in arrays) >> 20} MB"
    total += f", {leased >> 20} MB of the pool in use and {idle >> 20} idle"
    return f"{memory}, {blocks}, {total}\n{counts}\n{arrays[:MOST]}"


def _tell(app: App[Any]) -> None:
    """Write how many messages wait, what is in front, and what is waited for; the file is there at once.

    It is called between any two steps of the program, so that it answers even where the program goes round in circles.
    """
    with suppress(Exception), _Once():  # what it looks at may be half done: it is asked again
        written, wish = Path(HERE, f"{STATE}.part"), Path(HERE, HELD)
        held = ""
        if wish.exists():
            wish.unlink()
            held = _held()
        written.write_text(f"{_state(app)}\n{held}", encoding="utf-8")
        written.replace(Path(HERE, STATE))


def _state(app: App[Any]) -> str:
    turn, worker = getattr(app, "in_turn", None), getattr(app, "worker", None)
    pumps = (app, *app.screen_stack)
    waiting = sum(pump.message_queue_size for pump in pumps)
    if turn is not None:
        waiting += turn.waiting + (not turn.idle)
    front = app.screen_stack[-1].__class__.__name__ if app.screen_stack else ""
    lines = [f"{waiting} {front}", f"screens: {app.screen_stack}", f"focus: {app.focused}"]
    lines += [f"size: {app.screen.size.width} × {app.screen.size.height}"]
    lines += [f"{pump.message_queue_size} for {pump}" for pump in pumps]
    behind = turn and turn.waits_for
    lines += [f"batches: {app._batch_count}", f"behind: {behind and (behind.widget, behind.number)}"]
    lines += [f"{worker and vars(worker)}", *map(_awaits, pumps)]
    if worker is not None and (not worker._thread._threads or worker._thread._idle_semaphore._value):
        lines += [AT_REST]
    return "\n".join(lines)


def _awaits(pump: MessagePump) -> str:
    """The calls that a widget's own task waits in, from the outermost one."""
    frames, waits = [], pump._task and pump._task.get_coro()
    while waits is not None:
        frame = getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)
        if frame is None:
            frames.append(repr(waits))
            break
        frames.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
        waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
    return f"{pump} waits in {' > '.join(frames)}"


def main() -> None:
    """Run the program."""
    from tui_transformer.cli import main as command

    leave, ready = App.exit, App._on_compose

    async def tell_when_asked(app: App[Any]) -> None:
        signal.signal(signal.SIGUSR2, lambda *_: _tell(app))
        await ready(app)

    def exit_when_told(app: App[Any], *arguments: Any, **named: Any) -> None:
        if Path(HERE, MAY_QUIT).exists():
            leave(app, *arguments, **named)

    App.exit = exit_when_told  # type: ignore[method-assign]
    App._on_compose = tell_when_asked  # type: ignore[method-assign]
    threads = Path(HERE, THREADS).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end
    faulthandler.register(signal.SIGUSR1, file=threads, all_threads=True)
    _find_no_packages()
    sys.addaudithook(_stay_inside)
    try:
        command.main()
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # asked while it ends, it would end otherwise than it does


if __name__ == "__main__":
    main()
