"""Whatever a learner's code does, one clear message comes of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from answering import COURSE, PATIENT

from tui_transformer.course import Finding, check, check_command
from tui_transformer.course.running import Limits

SCORES = COURSE.find("scores")


def checked(folder: Path, text: str, limits: Limits = PATIENT) -> Finding:
    file = folder / "scores.py"
    file.write_text(text, encoding="utf-8")
    return check(SCORES, file, limits)


DEFINED = "def scores(query, key):\n"
SAID = {
    f"{DEFINED}    return 1 ÷ 0": "line 2: SyntaxError",
    f"{DEFINED}    import os; os._exit(3)": "ends with exit code 3",
    f"{DEFINED}    import os; os.abort()": "was ended by signal 6",
    "x = 1": "begin it with `def scores(query, key):`",
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str) -> None:
    verdict = checked(tmp_path, text)
    assert not verdict.passed
    assert SAID[text] in verdict.says
    assert len(verdict.says.splitlines()) == 1


def test_an_endless_loop_is_ended(tmp_path: Path) -> None:
    verdict = checked(tmp_path, f"{DEFINED}    while True: pass", Limits(seconds=0.5))
    assert verdict.says == "scores.py: does not end within 0.5 s: is there an endless loop?"


def test_what_is_printed_is_no_answer_and_a_file_beside_it_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCORES.solution.read_text(encoding="utf-8"), encoding="utf-8")
    verdict = checked(tmp_path, "print('\\x1b[31mred')\nfrom mine import scores")
    assert verdict.passed
    assert verdict.printed == "\x1b[31mred\n"


PROGRAMS = {
    "echo nothing": "has no numbers",
    "exit 4": "ends with exit code 4",
    "echo 1 2 3": "has the shape 1 × 3",
    "cat /nowhere": "ends with exit code 1",
}


def test_what_is_wrong_with_a_program_is_said() -> None:
    for program, said in PROGRAMS.items():
        verdict = check_command(SCORES, ["sh", "-c", program], PATIENT)
        assert not verdict.passed
        assert said in verdict.says
    assert "cannot be run: No such file" in check_command(SCORES, ["./no-such-program"], PATIENT).says


C = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
                printf("%g ", s / sqrt(atof(words[1])));
            }
            printf("\n");
        }
}
"""


def test_a_program_in_c_is_told_what_it_divides_by(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no compiler for C")
    (tmp_path / "scores.c").write_text(C, encoding="utf-8")
    program = str(tmp_path / "a.out")
    subprocess.run([compiler, "-o", program, str(tmp_path / "scores.c"), "-lm"], check=True, timeout=60)
    for by, cause in (("8", None), ("32", "scale-d_model"), ("1", "scale-missing")):
        verdict = check_command(SCORES, [program, by], PATIENT)
        assert verdict.passed == (cause is None), verdict.says
        assert verdict.cause == cause
