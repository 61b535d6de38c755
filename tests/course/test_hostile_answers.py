"""Answers that mean harm or do it by accident: each ends within limits, and in one line."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses

from tui_transformer.course import Finding, check, check_command, open_course, processes, running
from tui_transformer.course.processes import Family, adopting, every
from tui_transformer.course.running import Limits
from tui_transformer.errors import InputError
from tui_transformer.files import read_regular

SCORES = open_course().find("scores")
RIGHT = "query @ key.swapaxes(-1, -2) / np.sqrt(8)"
PATIENT = 200.0
"""Seconds: a busy machine is no fault of an answer."""
LIMITS = Limits(seconds=PATIENT, disk=4 << 20, written=32 << 20, processes=20)
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

Check = Callable[..., Finding]


@pytest.fixture
def answer(tmp_path: Path) -> Check:
    """Checks a function of these lines, with `mark` a path that it can write to."""

    def run(*lines: str, limits: Limits = LIMITS) -> Finding:
        head = f"import os, signal, subprocess, sys, time\nimport numpy as np\nmark = {str(tmp_path / 'mark')!r}\n"
        body = "".join(f"    {line}\n" for line in lines)
        file = tmp_path / "scores.py"
        file.write_text(f"{head}\n\ndef scores(query, key):\n{body}    return {RIGHT}\n", encoding="utf-8")
        return check(SCORES, file, limits)

    return run


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def fails(finding: Finding, said: str) -> None:
    assert not finding.passed
    assert said in finding.says, finding.says
    assert len(finding.says.splitlines()) == 1


def marked(mark: Path) -> list[int]:
    """The processes that wrote their numbers into a file, as far as they still run."""
    there = every()
    return [int(pid) for pid in mark.read_text().split() if int(pid) in there and not there[int(pid)].ended]


LONG = "time.sleep(600)"
PID = "open(mark, 'a').write(f'{os.getpid()} ')"
LEAVING = (
    f"if os.fork() == 0: {PID}; {LONG}",
    f"if os.fork() == 0: os.setsid(); {PID}; {LONG}",
    f"if os.fork() == 0: os.setsid(); os.fork() or ({PID}, {LONG}); os._exit(0)",
    f"if os.fork() == 0: signal.signal(15, signal.SIG_IGN); os.setpgid(0, 0); {PID}; {LONG}",
    f'command = [sys.executable, "-c", "import os, sys, time; mark = sys.argv[1]; {PID}; {LONG}", mark]',
    "subprocess.Popen(command)",
    "subprocess.Popen(command, env={}, start_new_session=True)",
)


@LINUX
def test_what_leaves_the_group_is_ended_too(answer: Check, tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    assert answer(*LEAVING, "while len(open(mark).read().split()) < 6: time.sleep(0.01)", "time.sleep(0.1)").passed
    assert len((tmp_path / "mark").read_text().split()) == 6
    assert not marked(tmp_path / "mark")


@LINUX
def test_what_stops_its_parent_from_looking_is_ended_with_the_time(answer: Check, tmp_path: Path) -> None:
    line = "signal.signal(15, signal.SIG_IGN); os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None"
    started = time.monotonic()
    fails(answer(line, PID, LONG, limits=Limits(seconds=1.0)), "does not end within 1 s")
    assert time.monotonic() - started < 20
    assert not marked(tmp_path / "mark")


@LINUX
def test_what_was_started_ends_with_a_check_that_is_killed(tmp_path: Path) -> None:
    file, mark = tmp_path / "scores.py", tmp_path / "mark"
    start = f"import os, subprocess, time\nmark = {str(mark)!r}\n\n\ndef scores(query, key):\n"
    file.write_text(f"{start}    if os.fork() == 0:\n        os.setsid()\n    {PID}\n    {LONG}\n", encoding="utf-8")
    command = [sys.executable, "-m", "tui_transformer", "exercise", "check", "scores", str(file), "--seconds", "500"]
    with subprocess.Popen(command) as process:
        until(lambda: mark.exists() and len(marked(mark)) == 2)
        process.kill()
    until(lambda: not marked(mark))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@LINUX
def test_processes_are_counted(answer: Check, tmp_path: Path) -> None:
    lines = ("for _ in range(60):", f"    if os.fork() == 0: os.setsid(); {PID}; {LONG}", LONG)
    fails(answer(*lines), "starts more than the 20 processes that it may")
    assert len((tmp_path / "mark").read_text().split()) > 10
    assert not marked(tmp_path / "mark")


def test_other_children_of_this_process_are_left_alone_and_orphans_adopted_only_meanwhile(answer: Check) -> None:
    with subprocess.Popen([sys.executable, "-c", LONG.join(("import time;", ""))], start_new_session=True) as other:
        assert answer("pass").passed
        assert other.poll() is None
        other.kill()
    kept = ctypes.c_int(7)
    with adopting():
        pass
    ctypes.CDLL(None).prctl(37, ctypes.byref(kept), 0, 0, 0)
    assert kept.value == 0


@LINUX
def test_without_proc_those_that_were_seen_or_are_marked_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
    monkeypatch.setattr(processes, "PS", ("ps", "axeww", "-o", "pid=,ppid=,stat=,lstart=,args="))
    before = every()
    child = f"subprocess.Popen([sys.executable, '-c', 'import time; {LONG}'])"
    command = [sys.executable, "-c", f"import subprocess, sys, time; {child}; print(1, flush=True); {LONG}"]
    marked = {"env": {"MARK": "of-this-test"}, "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **marked) as root:
        assert root.stdout
        root.stdout.readline()
        family = Family(root.pid, before, "MARK=of-this-test")
        seen = family.living()
        assert len(seen) == 2
        family.end()
    assert not {each.pid for each in seen} & {each.pid for each in every().values() if not each.ended}


@LINUX
def test_the_limits_are_those_that_are_asked_for_and_cannot_be_raised_not_even_by_root(answer: Check) -> None:
    kinds, most = ("DATA", "FSIZE", "CORE", "CPU", "NPROC"), (LIMITS.memory, LIMITS.disk, 0)
    lines = (
        "import resource",
        f"for kind in [getattr(resource, f'RLIMIT_{{name}}') for name in {kinds}]:",
        "    print(resource.getrlimit(kind))",
        "    try: resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))",
        "    except ValueError as error: print(error)",
    )
    said = answer(*lines).printed.splitlines()
    assert said[:6:2] == [f"({each}, {each})" for each in most]
    assert said[1::2] == ["not allowed to raise maximum limit"] * len(kinds)


@LINUX
def test_memory_of_all_processes_together_is_watched_and_what_they_share_counts_once(answer: Check) -> None:
    lines = ("for _ in range(4):", f"    if os.fork() == 0: x = np.ones(10_000_000); {LONG}", LONG)
    said = "takes more memory than it may, with the processes that it started"
    fails(answer(*lines, limits=Limits(seconds=PATIENT, memory=240 << 20)), said)
    lines = ("x = np.ones(8_000_000)", "if os.fork() == 0: time.sleep(0.4); os._exit(0)", "time.sleep(0.3)")
    assert answer(*lines, limits=Limits(seconds=PATIENT, memory=150 << 20)).passed


FILLING = {
    "for i in range(450): open(f'{i}', 'wb').write(b'0' * 12_000)": "writes more than the 4 MiB that it may",
    "open(mark, 'wb').write(b'0' * 5_000_000)": "writes a larger file than it may",
    "for i in range(501): open(f'{i}', 'w').close()": "makes more than 500 files",
    "for i in range(400): os.mkdir('x'); os.chdir('x')": "makes deep folders",
    "for i in range(40): open(mark, 'wb').write(b'0' * 4_000_000)": "writes more than the 32 MiB that it may in all",
}


@pytest.mark.parametrize("line", FILLING)
def test_a_disk_is_not_filled(answer: Check, line: str, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_FILES", 500)
    fails(answer(line, "time.sleep(2)" if "in all" in FILLING[line] else "pass"), FILLING[line])
    assert not list(temporary.iterdir())


def test_sparse_files_take_nothing(answer: Check) -> None:
    assert answer("for i in range(8): open(f'{i}', 'wb').truncate(4_000_000)").passed


INSTEAD = {
    "a pipe": os.mkfifo,
    "an endless device by a link": lambda path: path.symlink_to("/dev/zero"),
    "somebody's file by a link": lambda path: path.symlink_to("/etc/passwd"),
    "a folder": os.mkdir,
}
LATER = "import atexit; atexit.register(lambda: (os.path.exists('../{0}') and os.remove('../{0}'), {1}))"


@LINUX
def test_what_stands_in_the_place_of_the_answer_holds_nothing_up(answer: Check, tmp_path: Path) -> None:
    folder = running.Scratch(tmp_path)
    for way, put in INSTEAD.items():
        put(tmp_path / way)
        with pytest.raises(InputError, match=f"{way}: .*link" if "link" in way else f"{way}: .*not a regular file"):
            folder.read(way, 1000)
    fails(answer(LATER.format("answer.npz", "os.mkfifo('../answer.npz')")), "answer.npz: not a regular file")
    finding = answer(LATER.format("result.json", "os.symlink('/etc/passwd', '../result.json')"))
    fails(finding, "result.json: a link")
    assert "root" not in finding.says + finding.printed
    # a pipe that is waited for
    fails(answer("os.mkfifo('../answer.npz')", limits=Limits(seconds=0.5)), "does not end within 0.5 s")


@LINUX
def test_a_folder_in_the_place_of_its_own_is_not_taken_for_it(answer: Check, tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "kept").write_text("kept")
    line = f"here = os.path.realpath('..'); os.rename(here, here + 'x'); os.symlink({str(tmp_path / 'theirs')!r}, here)"
    finding = answer("import atexit", f"atexit.register(lambda: exec({line!r}))")
    assert finding.passed  # what it returned is read from the folder that it was given
    assert (tmp_path / "theirs" / "kept").read_text() == "kept"
    assert not list(temporary.iterdir())


def test_an_answer_that_is_no_array_file_or_a_huge_one_is_said(answer: Check) -> None:
    line = "import atexit; atexit.register(lambda: open('../answer.npz', 'wb').write(b'nothing'))"
    fails(answer(line), "gives no answer")
    large = (
        "atexit.register(lambda: np.savez_compressed('../answer.npz', **{'scores/0': np.zeros((5000, 5000), 'i1')}))"
    )
    fails(answer("import atexit", large), "returns 5000 × 5000 cells")


def test_the_file_of_an_answer_is_a_file_and_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(SCORES.solution)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * 2_000_000)
    said = {"link": "a link, not a file", "pipe": "not a regular file", "large": "larger than", "none": "no such file"}
    for name, reason in said.items():
        with pytest.raises(InputError, match=reason):
            check(SCORES, tmp_path / name)
    (tmp_path / "file").write_bytes(b"1234")
    assert read_regular(tmp_path / "file", 4) == b"1234"
    refuses("larger", lambda: read_regular(tmp_path / "file", 3))
    refuses("not a regular file", lambda: read_regular(Path("/dev/zero"), 3))


@LINUX
def test_what_a_program_prints_is_bounded(answer: Check) -> None:
    said = "prints more than the 4 MiB that it may"
    large = Limits(seconds=PATIENT)
    finding = answer("for _ in range(1000): print('x' * 1_000_000)", limits=large)
    fails(finding, said)
    assert len(finding.printed) <= running.MOST_PRINTED
    fails(check_command(SCORES, ["sh", "-c", "yes"], large), said)
    fails(check_command(SCORES, ["sh", "-c", "yes >&2"], large), said)


def test_a_closed_output_is_no_end(answer: Check) -> None:
    assert answer("os.close(1); os.close(2); sys.stdout = None").passed
    fails(check_command(SCORES, ["sh", "-c", "exec >&-; echo 1"], LIMITS), "ends with exit code")


def test_a_small_environment_is_given(answer: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    finding = answer("print(sorted(os.environ), os.environ['HOME'] == os.getcwd() == os.environ['TMPDIR'])")
    names, _, at_home = finding.printed.rpartition("] ")
    assert at_home == "True\n"
    assert "'PATH'" in names
    assert "'LC_ALL'" in names
    assert not {"AWS", "SSH", "USER"} & {name.partition("_")[0] for name in names.replace("'", "").split(", ")}
    program = check_command(SCORES, ["sh", "-c", "env >&2; cat /proc/$$/environ >&2; exit 0"], LIMITS)
    assert "PATH=" in program.printed
    assert "secret" not in program.printed


FAKE = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log: log.write(json.dumps(arguments) + "\\n")
words = arguments[arguments.index("--") + 1:]
limits = dict(each.removeprefix("--property=").split("=") for each in arguments if each.startswith("--property="))
if words[0] == "sh":
    print(limits["MemoryMax"] if {works} else "max", limits["TasksMax"])
else:
    os.execvp(words[0], words)
"""


def systemd(folder: Path, *, works: bool) -> Path:
    """A systemd-run that runs what it is given, and holds what is asked for or does not; and the list of its calls."""
    log = folder / "log"
    folder.mkdir()
    for name in ("systemd-run", "systemctl"):
        text = FAKE if name == "systemd-run" else '#!/bin/sh\necho "[\\"$*\\"]" >> {log}\n'
        (folder / name).write_text(text.format(python=sys.executable, log=str(log), works=works))
        (folder / name).chmod(stat.S_IRWXU)
    return log


@LINUX
def test_where_systemd_makes_a_cgroup_all_processes_are_held_together(answer, tmp_path, monkeypatch):
    log = systemd(tmp_path / "bin", works=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    finding = answer("print(open('/proc/self/environ').read())")
    assert finding.passed
    assert "secret" not in finding.printed
    assert processes.describe_limits() == ""
    _, run, end = log.read_text().splitlines()
    assert all(each in run for each in (f"MemoryMax={LIMITS.memory}", "TasksMax=", "MemorySwapMax=0", "RuntimeMaxSec="))
    name = run.partition("--unit=")[2].partition('"')[0]
    assert end == f'["--user kill --signal=SIGKILL {name}"]'


@LINUX
def test_where_no_cgroup_is_made_that_is_said(answer: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd(tmp_path / "holds nothing", works=False)
    systemd(tmp_path / "fails", works=False)
    (tmp_path / "fails" / "systemd-run").write_text("#!/bin/sh\nexit 1\n")
    for path in (f"{tmp_path / 'holds nothing'}:/bin", f"{tmp_path / 'fails'}:/bin", "/nowhere"):
        monkeypatch.setenv("PATH", path)
        assert "hold for each process of an answer alone" in processes.describe_limits()
        assert answer("pass").passed
