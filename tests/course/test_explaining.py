"""What a learner is told about an answer that is wrong: one clear message, whatever the code does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from answering import COURSE, PATIENT, told

from tui_transformer.course import Finding, check, check_command
from tui_transformer.course.running import Limits

PASSES = ("passes",)
BACKWARD = f"""
import sys
sys.path.insert(0, {str(COURSE.find("backward").folder)!r})
import mistakes as wrong, solution as right
given = x, weight, bias, ids
""".lstrip()
LATER = "later = np.triu(np.ones(scaled.shape[-2:], bool), 1)\n"
LOSS = """r = logits[:-1] - logits[:-1].max(-1, keepdims=True)
l = r - np.log(np.exp(r).sum(-1, keepdims=True))
loss = -l[np.arange(len(r)), ids[1:]].mean()
"""
NORM = "r = x + y\nm = (r - r.mean(-1, keepdims=True)) / np.sqrt(r.var(-1, keepdims=True){}) * gamma + beta\nreturn {}"
NOT_A_NUMBER = ("softmax-overflow", "(NaN)", "Subtract the largest score of each row")
FINITE, PUT = "mask-finite", "put −∞, in NumPy -np.inf"
IDS = (
    "pieces = [each for each in re.findall(r'\\w+|\\W', text.lower()) if each != ' ']\n"
    "r = [words.index(each) if each in words else words.index('[UNK]') for each in pieces]\n"
)
FROM_THE_WORD = "token 0 is the first that differs: ids[0] is"

SAID: dict[str, dict[str, tuple[str | None, ...]]] = {
    # By exercise: the answer, the mistake that is named, and what is said of it
    "softmax": {
        "return np.exp(masked) / np.exp(masked).sum(axis=-1, keepdims=True)": NOT_A_NUMBER,
        "return np.exp(masked) / np.sum(np.exp(masked), axis=-1)[..., None]": NOT_A_NUMBER,
        "e = np.exp(masked.astype(np.float32)); return e / e.sum(-1, keepdims=True)": NOT_A_NUMBER,
        "r = masked - masked.max(-1, keepdims=True)\n"
        "r -= np.log(np.exp(r).sum(-1, keepdims=True))\nreturn np.exp(r)": PASSES,
        "m = masked - np.sort(masked)[..., -1:] - 3\nreturn np.exp(m) / np.exp(m).sum(-1)[..., None]": PASSES,
        "return masked - masked.max(axis=-1)": ("keepdims-missing", "with keepdims=True"),
    },
    "mask": {
        # a number in the place of infinity
        f"{LATER}return np.where(later, -1e9, scaled)": (FINITE, "masked has −1e9 where −∞ is asked for", PUT),
        f"{LATER}return scaled + np.where(later, -1e9, 0)": (FINITE, "masked has about −1e9 where −∞", PUT),
        f"{LATER}return np.where(later, np.finfo(np.float32).min, scaled)": (
            FINITE,
            "masked has −3.4e38 where −∞",
            PUT,
        ),
        f"{LATER}return np.where(later, -1e4, scaled)": (FINITE, "masked has −1e4 where −∞", PUT),
        f"{LATER}return np.where(later, -1e9, 3 * scaled)": (FINITE, "masked differs (relative 2)"),
        f"{LATER}return np.where(later, -100, scaled).astype(np.float32)": (FINITE, "masked has −100 where −∞", PUT),
        "return np.where(np.triu(np.ones((13, 13), bool), 1), -np.inf, scaled).reshape(-1)": (
            "shape",
            "The numbers are right: .reshape(4, 13, 13) gives them their axes",
        ),
    },
    "tokenize": {
        "return [words.index('where')]": (None, "ids ends after 1 token, and should have 8: token 1 is 7 (“did”)"),
        "return np.arange(8)": (None, f"{FROM_THE_WORD} 0 (“[PAD]”), and should be 12 (“where”)"),
        "return [12, 7, 4, 4]": (
            None,
            "token 3 is the first that differs: ids[3] is 4 (“the”), and should be 1 (“[UNK]”)",
        ),
        "return [12.5]": (None, f"{FROM_THE_WORD} 12.5 (no word), and should be 12 (“where”)"),
        "return [[12, 7]]": (None, "ids has the shape 1 × 2: it should be a list of 8 IDs"),
        f"{IDS}return r": PASSES,
        f"{IDS}return r + [3]": (None, "ids has 9 tokens, and should have 8: token 8, 3 (“"),
    },
    "scores": {
        # products that do not go
        "return query @ key / np.sqrt(8)": (
            "key-not-transposed",
            "`query @ key`: 4 × 9 × 8 times 4 × 9 × 8 does not go",
            "K is not transposed",
            "key.swapaxes(-1, -2)",
        ),
        "return np.matmul(query, key)": ("key-not-transposed", "K is not transposed"),
        "return np.dot(query, key)": ("key-not-transposed", "K is not transposed"),
        "return query.dot(key)": ("key-not-transposed", "K is not transposed"),
        "K = key\nreturn (query\n    @ K) / 2": ("key-not-transposed", "line 02: ", "K.swapaxes(-1, -2)"),
        "return query @ key.T": ("transposed-all-axes", ".T turns all axes round", "key.swapaxes(-1, -2)"),
        "return query @ key.transpose(0, 2, 1)[:3]": (None, "the axes in front, as of the heads"),
        "return query + key[0, 0, :3]": (None, "4 × 9 × 8 and 3 do not fit cell by cell"),
        # errors
        "return {}['query']": (None, "line 01: KeyError: 'query'"),
        "raise ValueError('mine')": (None, "line 01: ValueError: mine"),
        "return query @ keys": (None, "line 01: NameError: name 'keys' is not defined"),
        "import sys; sys.exit(0)": (None, "line 01: SystemExit"),
        "raise KeyboardInterrupt": (None, "line 01: KeyboardInterrupt"),
        "def again(): return again()\nreturn again()": (None, "line 01: RecursionError"),
        "return np.ones(10**10)": (None, "takes more memory than it may"),
        "raise NotImplementedError": (None, "is not written yet"),
        # answers of another kind
        "return": (None, "returns nothing"),
        "pass": (None, "returns nothing"),
        "return [[1, 2], [3]]": (None, "no array of numbers"),
        "return 'text'": (None, "returns texts: return numbers"),
        'return {"scores": query}': (None, "returns no scaled: return scaled"),
        "return query": (None, "scaled has the shape 4 × 9 × 8: it should be 4 × 9 × 9 (head × query × key)"),
        "return np.full((4, 9, 9), np.nan)": (None, "scaled[0, 0, 0] is not a number (NaN), 324 cells are"),
        "return np.zeros((4, 9, 9))": (None, "every cell is 0"),
        "return key @ query.swapaxes(-1, -2) / np.sqrt(8)": ("scores-transposed",),
        "return query @ key.swapaxes(1, 2) / 2": ("scale-integer", "by √d_k = √8 = 2.82843"),
        # a right answer, in many ways
        **{
            f"r = query @ key.swapaxes(-1, -2) / np.sqrt(8)\nreturn {answer}": PASSES
            for answer in ('{"scaled": r}', "r.astype(np.float16)", "r.astype(np.float32)", "r.tolist()", "(r,)")
        },
    },
    "query-key-value": {
        "return weights['key.weight'] @ x": ("product-order", "x @ weights['key.weight']"),
        "return x @ weights['query']": (None, "weights has no 'query': it has query.", ".weight"),
        "f = lambda n: x @ weights[n + '.weight'] + weights[n + '.bias']\nreturn f('query'), f('key'), f('value')": (
            "shape",
            "query has the shape 9 × 32: it should be 4 × 9 × 8 (head",
            ".reshape(9, 4, 8).transpose(1, 0, 2) puts them in place",
        ),
    },
    "feed-forward": {"return x @ weights['hidden.weight'].T": ("transposed", "Leave out the .T")},
    "backward": {
        "return np.ones((11, 28)) @ weight, 0, 0": ("not-transposed", "Should weight be transposed, weight.T"),
        "return x @ np.ones((11, 28)), 0, 0": ("not-transposed", "Should x be transposed, x.T @ "),
        f"{BACKWARD}a, b, c = right.backward(*given)\nreturn c, b, a": (
            "answers-order",
            "at_weight has the numbers of at_x: return at_weight, at_bias, at_x, in this order",
        ),
        # a mistake is named only where all answers are mistaken so
        f"{BACKWARD}a, b, c = wrong.upwards(*given)\nd, e, f = wrong.not_divided(*given)\nreturn a, e, f": (
            None,
            "at_weight differs",
            "every cell has the opposite sign",
        ),
        f"{BACKWARD}return wrong.upwards(*given)": ("gradient-sign",),
        f"{BACKWARD}a, b, c = right.backward(*given)\nreturn a, b, 2 * c": (
            None,
            "at_x differs (relative 1)",
            "every cell is twice the right one",
            "\nat_x[",
        ),
    },
    "embed": {
        "return (table[ids] * np.sqrt(32)).T": ("shape", "another order of axes: .transpose(1, 0) puts them"),
        "return table[ids][:, :7]": (None, "embedded has the shape 9 × 7: it should be 9 × 32 (token ×"),
        # factors, in the numbers of the model
        "return table[ids] * 32": (None, "every cell is 5.65685 = √32 = √d_model times the right one"),
        "return table[ids] * np.sqrt(9)": (None, "0.53033 = √9 ÷ √32 = √(number of tokens) ÷ √d_model times"),
        "return table[ids] * -np.sqrt(32)": (None, "every cell has the opposite sign"),
        "return table[ids] ** 2": (None, "No known mistake explains it."),
    },
    "cross-entropy": {
        # of a single number only factors that have a name
        f"{LOSS}return 3 * loss / 2": (None, "No known mistake explains it."),
        f"{LOSS}return 2 * loss": (None, "it is twice the right one"),
        f"{LOSS}return loss * 13 / 12": (
            None,
            "it is 1.08333 = 13 ÷ 12 = number of tokens ÷ number of counted positions times the right one",
        ),
    },
    "add-and-norm": {
        # what rounding could be, where float64 shows it
        NORM.format("", "m"): ("norm-epsilon", "Nearly: right to 2e-06", "It matches without ε"),
        NORM.format(" + epsilon", "m"): PASSES,
        NORM.format(" + epsilon", "m.astype(np.float32)"): PASSES,
        NORM.format(" + epsilon * 0.9", "m"): PASSES,  # rounding, as far as can be known
    },
}


@pytest.mark.parametrize("name", SAID)
def test_an_answer_is_told_what_is_wrong_with_it(name: str, tmp_path: Path) -> None:
    for finding, (answer, (cause, *parts)) in zip(told(name, tmp_path, *SAID[name]), SAID[name].items(), strict=True):
        said = f"{finding.says}\n{finding.place}"
        assert finding.passed == (cause in PASSES), (answer, said)
        assert finding.passed or finding.cause == cause, (answer, said)
        assert [part for part in parts if part not in said] == [], (answer, said)
        assert ("Nearly" in said) == (PUT in parts or cause == "norm-epsilon"), (answer, said)
        assert len(finding.says.splitlines()) == 1


def test_the_scores_of_the_softmax_task_are_near_a_thousand_in_every_second_row(tmp_path: Path) -> None:
    line = "print(masked[0, 1].max() > 990, masked[0, 0].max() < 100)\nreturn masked"
    assert told("softmax", tmp_path, line)[0].printed == "True True\n"
    assert "1,000" in COURSE.find("softmax").task


def test_what_a_program_in_c_prints_for_no_number_is_understood() -> None:
    program = (
        "import sys, numpy as np; lines = open(sys.argv[-1] + '/masked.txt').read().split('\\n')\n"
        "n = [int(x) for x in lines[0].split()]\n"
        "m = np.array([float(x) for line in lines[1:] for x in line.split()]).reshape(n); e = np.exp(m)\n"
        "for row in (e / e.sum(-1, keepdims=True)).reshape(-1, n[-1]):\n"
        "    print(*('-nan' if x != x else '%g' % x for x in row))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    finding = check_command(COURSE.find("softmax"), command, PATIENT)
    assert (finding.passed, finding.cause) == (False, "softmax-overflow"), finding.says


# Whatever the code of a learner does, one message comes of it


SCORES = COURSE.find("scores")


def checked(folder: Path, text: str, limits: Limits = PATIENT) -> Finding:
    file = folder / "scores.py"
    file.write_text(text, encoding="utf-8")
    return check(SCORES, file, limits)


DEFINED = "def scores(query, key):\n"
OF_FILES = {
    f"{DEFINED}    return 1 ÷ 0": "line 2: SyntaxError",
    f"{DEFINED}    import os; os._exit(3)": "ends with exit code 3",
    f"{DEFINED}    import os; os.abort()": "was ended by signal 6",
    "x = 1": "begin it with `def scores(query, key):`",
}


@pytest.mark.parametrize("text", OF_FILES)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str) -> None:
    verdict = checked(tmp_path, text)
    assert not verdict.passed
    assert OF_FILES[text] in verdict.says
    assert len(verdict.says.splitlines()) == 1


def test_a_product_that_fails_while_the_file_is_loaded_has_its_cause(tmp_path: Path) -> None:
    verdict = checked(tmp_path, "import numpy as np\nnp.ones((2, 3)) @ np.ones((2, 3)).T.T")
    assert verdict.cause == "transposed"


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
