"""The course on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from command_line import Run

from tui_transformer.course import open_course
from tui_transformer.course.exercise import Progress, progress_path, write_progress

SOLUTION = open_course().find("scores").solution.read_text(encoding="utf-8")


def test_an_exercise_from_its_start_to_the_end(run: Run, tmp_path: Path) -> None:
    assert "0 of 15 done" in run("exercise").out
    assert "wrote scores.py" in run("exercise", "start", "scores").out
    assert "is not written yet" in run("exercise", "check", "scores", code=1).out
    Path("scores.py").write_text(SOLUTION, encoding="utf-8")
    done = run("exercise", "check", "scores", code=0)
    assert " ".join(open_course().find("scores").learned.split()) in " ".join(done.out.split())
    assert "1 of 15 done. Next comes mask: Mask\nbegin with: tui-transformer exercise start mask" in done.out
    listed = run("exercise", "list").out
    assert "1 of 15 done" in listed
    assert any("scores" in line and line.rstrip().endswith("done") for line in listed.splitlines())


def test_what_is_wrong_is_explained(run: Run) -> None:
    Path("mine.py").write_text(SOLUTION.replace("query.shape[-1]", "32"), encoding="utf-8")
    ended = run("exercise", "check", "scores", "mine.py", code=1)
    assert "It matches when divided by √d_model: divide by √d_k = √8 instead of √32." in ended.out
    assert run("exercise", "check", "scores", "mine.py", "--json").json["cause"] == "scale-d_model"
    Path("scores.py").write_text("def scores(query, key):\n    return key\n", encoding="utf-8")
    ended = run("exercise", "check", "scores")
    assert "exercise hint scores; the right numbers: tui-transformer exercise open scores" in ended.out
    # a program
    command = f"{sys.executable} -c 'print(1)'"
    assert "loss is 1, and should be" in run("exercise", "check", "cross-entropy", "--command", command, code=1).out


def test_no_file_to_begin_with_takes_the_place_of_a_module_of_python(run: Run, tmp_path: Path) -> None:
    for each in open_course().exercises:
        assert run("exercise", "start", each.name).code == 0
    written = {path.stem for path in tmp_path.glob("*.py")}
    assert "tokenize_answer" in written
    assert not written & sys.stdlib_module_names


def test_an_answer_under_the_bare_name_of_its_exercise_is_found_where_no_other_is(run: Run) -> None:
    Path("tokenize.py").write_text(run("exercise", "solution", "tokenize").out, encoding="utf-8")
    run("exercise", "check", "tokenize", code=0)
    checked = {each["exercise"]: each for each in run("exercise", "check", "--all", "--json", code=1).json}
    assert checked["tokenize"]["passed"]
    Path("tokenize_answer.py").write_text("", encoding="utf-8")
    assert "has no function" in run("exercise", "check", "tokenize", code=1).out


def test_hints_come_one_after_the_other_and_next_is_the_first_that_is_not_done(run: Run) -> None:
    shown = [run("exercise", "hint", "scores").out for _ in range(4)]
    assert [each.partition(":")[0] for each in shown] == ["hint 1 of 3", "hint 2 of 3", "hint 3 of 3", "hint 3 of 3"]
    assert run("exercise", "next").out.startswith("1  tokenize")
    Path("tokenize_answer.py").write_text(run("exercise", "solution", "tokenize").out, encoding="utf-8")
    assert run("exercise", "check", "1").code == 0
    assert run("exercise", "next").out.startswith("2  embed")


def test_all_answers_of_a_folder_are_checked_and_nothing_is_recorded(run: Run, tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "scores.py").write_text(SOLUTION, encoding="utf-8")
    (tmp_path / "anna" / "softmax.py").symlink_to("/dev/zero")
    ended = run("exercise", "check", "anna", "--all", "--json")
    answers = {each["exercise"]: each for each in ended.json}
    assert ended.code == 1
    assert [name for name, each in answers.items() if each["passed"]] == ["scores"]
    assert answers["mask"]["says"] == "mask.py is not there"
    assert answers["softmax"]["says"].endswith("softmax.py: a link, not a file: name the file that it leads to")
    assert "0 of 15 done" in run("exercise").out


def test_what_an_answer_prints_or_raises_is_no_escape_code_not_even_in_json(run: Run) -> None:
    Path("scores.py").write_text("print('\\x1b]0;title\\x07')\n" + SOLUTION, encoding="utf-8")
    ended = run("exercise", "check", "scores")
    assert "\x1b" not in ended.out
    assert "| ␛]0;title␇" in ended.out
    Path("scores.py").write_text("def scores(query, key):\n    raise ValueError('\\x1b[2J\\x9b2J')\n", encoding="utf-8")
    for more in ((), ("--json",)):
        out = run("exercise", "check", "scores", *more).out
        assert "\x1b" not in out
        assert "\x9b" not in out
        assert "␛[2J\\x9b2J" in out.replace("\\\\", "\\")


def test_it_is_said_that_an_answer_has_all_rights_and_how_far_limits_go(run: Run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "runs with all your rights" in " ".join(run("exercise", "check", "--help").out.split())
    started = run("exercise", "start", "scores").err
    assert "runs with all your rights" in started
    assert "limits hold for each process of an answer alone" in started
    Path("scores.py").write_text(SOLUTION, encoding="utf-8")
    assert "limits hold for each process of an answer alone" in run("exercise", "check", "scores").err
    for limit in ("--seconds", "--memory"):  # more than a system can count
        run("exercise", "check", "scores", limit, "1e300").refuses("--seconds and --memory are at most 1,000,000", 2)


def test_after_the_last_comes_what_was_left_out_and_at_the_end_what_was_learned(run: Run) -> None:
    progress = Progress(frozenset(each.name for each in open_course().exercises[5:]))
    write_progress(progress_path(), "", progress)
    Path("scores.py").write_text(SOLUTION, encoding="utf-8")
    assert "Next comes tokenize: Tokenize" in run("exercise", "check", "scores").out
    progress = Progress(frozenset(each.name for each in open_course().exercises if each.name != "scores"))
    write_progress(progress_path(), "", progress)
    assert "scores" in run("exercise", "next").out
    for ended in (run("exercise", "check", "scores"), run("exercise", "next")):
        assert "all 15 exercises are done" in ended.out
        assert "You wrote a transformer" in ended.out
        assert "tui-transformer diff run.npz" in ended.out
        assert max(map(len, ended.out.splitlines())) <= 100
        assert "Next comes" not in ended.out
