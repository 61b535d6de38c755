"""Whatever a learner's code does, one clear message comes of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tui_transformer.course import Finding, check, check_command, open_course
from tui_transformer.course.running import Limits
from tui_transformer.errors import InputError

SCORES = open_course().find("scores")
PATIENT = Limits(seconds=60.0)
SIGNATURE = "import numpy as np\n\n\ndef scores(query, key):\n"

SAID = {
    "    return": "returns nothing",
    "    pass": "returns nothing",
    "    raise NotImplementedError": "is not written yet",
    "    return query @ keys": "line 5: NameError: name 'keys' is not defined",
    "    return query @ key": "line 5: `query @ key`: 4 × 9 × 8 times 4 × 9 × 8 does not go",
    "    return 1 ÷ 0": "line 5: SyntaxError",
    "    return [[1, 2], [3]]": "no array of numbers",
    "    return 'text'": "returns texts: return numbers",
    "    return query": "scaled has the shape 4 × 9 × 8: it should be 4 × 9 × 9 (head × query × key)",
    "    return np.full((4, 9, 9), np.nan)": "scaled[0, 0, 0] is not a number (NaN), 324 cells are",
    "    import sys; sys.exit(0)": "SystemExit",
    "    import os; os._exit(3)": "ends with exit code 3",
    "    import os; os.abort()": "was ended by signal 6",
    "    return np.ones(10**10)": "takes more memory than it may",
    "    return np.zeros((4, 9, 9))": "every cell is 0",
    "    raise KeyboardInterrupt": "KeyboardInterrupt",
    "    return scores(query, key)": "RecursionError",
}


def checked(folder: Path, body: str, limits: Limits = PATIENT, signature: str = SIGNATURE) -> Finding:
    file = folder / "scores.py"
    file.write_text(f"{signature}{body}\n", encoding="utf-8")
    return check(SCORES, file, limits)


@pytest.mark.parametrize("body", SAID)
def test_what_is_wrong_is_said(tmp_path: Path, body: str) -> None:
    verdict = checked(tmp_path, body)
    assert not verdict.passed
    assert SAID[body] in verdict.says
    assert len(verdict.says.splitlines()) == 1


@pytest.mark.parametrize(
    "answer", ['{"scaled": %s}', "(%s).astype(np.float16)", "(%s).astype(np.float32)", "(%s).tolist()", "(%s,)"]
)
def test_a_right_answer_may_be_returned_in_many_ways(tmp_path: Path, answer: str) -> None:
    verdict = checked(tmp_path, f"    return {answer % 'query @ key.swapaxes(-1, -2) / np.sqrt(8)'}")
    assert verdict.passed, verdict.says


def test_keys_before_queries_are_named_and_so_is_an_answer_that_is_left_out(tmp_path: Path) -> None:
    assert checked(tmp_path, "    return key @ query.swapaxes(-1, -2) / np.sqrt(8)").cause == "scores-transposed"
    assert "returns no scaled: return scaled" in checked(tmp_path, '    return {"scores": query}').says


def test_an_endless_loop_is_ended(tmp_path: Path) -> None:
    verdict = checked(tmp_path, "    while True: pass", Limits(seconds=1.0))
    assert verdict.says == "scores.py: does not end within 1 s: is there an endless loop?"


def test_a_missing_function_is_said_with_its_signature(tmp_path: Path) -> None:
    assert "begin it with `def scores(query, key):`" in checked(tmp_path, "x = 1", signature="").says


def test_what_is_printed_is_kept_and_not_taken_for_the_answer(tmp_path: Path) -> None:
    verdict = checked(tmp_path, SCORES.solution.read_text(encoding="utf-8"), signature="print('\\x1b[31mred')\n")
    assert verdict.passed
    assert verdict.printed == "\x1b[31mred\n"


def test_a_file_beside_the_answer_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCORES.solution.read_text(encoding="utf-8"), encoding="utf-8")
    assert checked(tmp_path, "from mine import scores", signature="").passed


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(SCORES, tmp_path / "none.py")


def test_no_process_that_was_started_outlives_the_check(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    later = f"import time; time.sleep(2); open({str(mark)!r}, 'w').close()"
    body = f"    import subprocess, sys\n    subprocess.Popen([sys.executable, '-c', {later!r}])\n    return query"
    checked(tmp_path, body)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(3)"], check=True)
    assert not mark.exists()


COMMANDS = {
    "print('nothing')": "has no numbers",
    "import sys; sys.exit(4)": "ends with exit code 4",
    "print('1 2 3')": "has the shape 1 × 3",
    "print(open('/nowhere'))": "ends with exit code 1",
}


@pytest.mark.parametrize("program", COMMANDS)
def test_what_is_wrong_with_a_program_is_said(program: str) -> None:
    verdict = check_command(SCORES, [sys.executable, "-c", program], PATIENT)
    assert not verdict.passed
    assert COMMANDS[program] in verdict.says


def test_a_program_that_is_not_there_is_said() -> None:
    assert "cannot be run: No such file" in check_command(SCORES, ["./no-such-program"], PATIENT).says


C = r"""
#include <math.h>
#include <stdio.h>

static double q[4][9][8], k[4][9][8];

static void get(const char *folder, const char *name, double *to, int count) {
    char path[4096];
    int a, b, c;
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    FILE *file = fopen(path, "r");
    if (fscanf(file, "%d %d %d", &a, &b, &c) != 3) return;
    for (int i = 0; i < count; i++) if (fscanf(file, "%lf", to + i) != 1) return;
}

int main(int count, char **words) {
    get(words[count - 1], "query", &q[0][0][0], 288);
    get(words[count - 1], "key", &k[0][0][0], 288);
    for (int h = 0; h < 4; h++)
        for (int i = 0; i < 9; i++) {
            for (int j = 0; j < 9; j++) {
                float s = 0;
                for (int d = 0; d < 8; d++) s += q[h][i][d] * k[h][j][d];
                printf("%g ", s / sqrt(DIVIDED_BY));
            }
            printf("\n");
        }
}
"""


@pytest.mark.parametrize(("by", "cause"), [("8", None), ("32", "scale-d_model"), ("1", "scale-missing")])
def test_a_program_in_c_is_told_what_it_divides_by(tmp_path: Path, by: str, cause: str | None) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler for C")
    (tmp_path / "scores.c").write_text(C, encoding="utf-8")
    program = str(tmp_path / "a.out")
    subprocess.run(
        [compiler, f"-DDIVIDED_BY={by}", "-o", program, str(tmp_path / "scores.c"), "-lm"], check=True, timeout=60
    )
    verdict = check_command(SCORES, [program], PATIENT)
    assert verdict.passed == (cause is None), verdict.says
    assert verdict.cause == cause
