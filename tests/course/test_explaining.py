"""What a learner is told about an answer that is wrong, beyond the mistakes that are planted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_transformer.course import Finding, check, check_command, open_course
from tui_transformer.course.running import Limits

COURSE = open_course()
PATIENT = Limits(seconds=200.0)
HEAD = "import re\nimport numpy as np\n"

Check = Callable[[str, str], Finding]


@pytest.fixture
def answer(tmp_path: Path) -> Check:
    """Checks the function of an exercise, of which the lines are given."""

    def run(name: str, lines: str) -> Finding:
        exercise = COURSE.find(name)
        file = tmp_path / exercise.file
        body = "".join(f"    {line}\n" for line in lines.splitlines())
        file.write_text(f"{HEAD}\n\ndef {exercise.function}({', '.join(exercise.inputs)}):\n{body}", encoding="utf-8")
        return check(exercise, file, PATIENT)

    return run


def says(finding: Finding, cause: str | None, *parts: str) -> None:
    assert not finding.passed
    assert finding.cause == cause, finding.says
    for part in parts:
        assert part in finding.says, finding.says
    assert len(finding.says.splitlines()) == 1


# Softmax


@pytest.mark.parametrize(
    "line",
    [
        "return np.exp(masked) / np.exp(masked).sum(axis=-1, keepdims=True)",
        "return np.exp(masked) / np.sum(np.exp(masked), axis=-1)[..., None]",
        "e = np.exp(masked.astype(np.float32)); return e / e.sum(-1, keepdims=True)",
    ],
)
def test_a_softmax_that_overflows_does_not_pass_and_the_mistake_is_named(answer: Check, line: str) -> None:
    says(answer("softmax", line), "softmax-overflow", "(NaN)", "Subtract the largest score of each row")


def test_a_softmax_by_another_way_passes(answer: Check) -> None:
    logarithms = (
        "r = masked - masked.max(-1, keepdims=True)\nr -= np.log(np.exp(r).sum(-1, keepdims=True))\nreturn np.exp(r)"
    )
    assert answer("softmax", logarithms).passed
    more = "m = masked - np.sort(masked)[..., -1:] - 3\nreturn np.exp(m) / np.exp(m).sum(-1)[..., None]"
    assert answer("softmax", more).passed


def test_what_a_program_in_c_prints_for_no_number_is_understood() -> None:
    program = (
        "import sys, numpy as np; lines = open(sys.argv[-1] + '/masked.txt').read().split('\\n')\n"
        "n = [int(x) for x in lines[0].split()]\n"
        "m = np.array([float(x) for line in lines[1:] for x in line.split()]).reshape(n); e = np.exp(m)\n"
        "for row in (e / e.sum(-1, keepdims=True)).reshape(-1, n[-1]):\n"
        "    print(*('-nan' if x != x else '%g' % x for x in row))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    says(check_command(COURSE.find("softmax"), command, PATIENT), "softmax-overflow")


def test_the_scores_of_the_softmax_task_are_near_a_thousand_in_every_second_row(answer: Check) -> None:
    finding = answer("softmax", "print(masked[0, 1].max() > 990, masked[0, 0].max() < 100)\nreturn masked")
    assert finding.printed == "True True\n"
    assert "1,000" in COURSE.find("softmax").task


# −∞

HIDDEN = {
    "np.where(later, -1e9, scaled)": "masked has −1e9 where −∞ is asked for",
    "scaled + np.where(later, -1e9, 0)": "masked has about −1e9 where −∞",
    "np.where(later, np.finfo(np.float32).min, scaled)": "masked has −3.4e38 where −∞",
    "np.where(later, -1e4, scaled)": "masked has −1e4 where −∞",
    "np.where(later, -100, scaled).astype(np.float32)": "masked has −100 where −∞",
}


@pytest.mark.parametrize("line", HIDDEN)
def test_a_number_in_the_place_of_infinity_is_named(answer: Check, line: str) -> None:
    lines = f"later = np.triu(np.ones(scaled.shape[-2:], bool), 1)\nreturn {line}"
    says(answer("mask", lines), "mask-finite", HIDDEN[line], "put −∞, in NumPy -np.inf")


def test_a_number_in_the_place_of_infinity_is_not_all_that_is_wrong(answer: Check) -> None:
    lines = "later = np.triu(np.ones(scaled.shape[-2:], bool), 1)\nreturn np.where(later, -1e9, 3 * scaled)"
    assert "Nearly" not in answer("mask", lines).says


# Tokens

TOKENS = {
    "return [words.index('where')]": "ids ends after 1 token, and should have 8: token 1 is 7 (“did”)",
    "return np.arange(8)": "token 0 is the first that differs: ids[0] is 0 (“[PAD]”), and should be 12 (“where”)",
    "return [12, 7, 4, 4]": "token 3 is the first that differs: ids[3] is 4 (“the”), and should be 1 (“[UNK]”)",
    "return [12.5]": "token 0 is the first that differs: ids[0] is 12.5 (no word), and should be 12 (“where”)",
    "return [[12, 7]]": "ids has the shape 1 × 2: it should be a list of 8 IDs",
}


@pytest.mark.parametrize("line", TOKENS)
def test_token_ids_are_explained_by_the_first_that_differs(answer: Check, line: str) -> None:
    says(answer("tokenize", line), None, TOKENS[line])


def test_a_token_too_many_is_said(answer: Check) -> None:
    right = (
        "pieces = [each for each in re.findall(r'\\w+|\\W', text.lower()) if each != ' ']\n"
        "r = [words.index(each) if each in words else words.index('[UNK]') for each in pieces]"
    )
    assert answer("tokenize", f"{right}\nreturn r").passed
    says(answer("tokenize", f"{right}\nreturn r + [3]"), None, "ids has 9 tokens, and should have 8: token 8, 3 (“")


# Products

PRODUCTS = {
    ("scores", "return query @ key / np.sqrt(8)"): (
        "key-not-transposed",
        "K is not transposed",
        "key.swapaxes(-1, -2)",
    ),
    ("scores", "return np.matmul(query, key)"): ("key-not-transposed", "K is not transposed"),
    ("scores", "return np.dot(query, key)"): ("key-not-transposed", "K is not transposed"),
    ("scores", "return query.dot(key)"): ("key-not-transposed", "K is not transposed"),
    ("scores", "K = key\nreturn (query\n    @ K) / 2"): ("key-not-transposed", "line 7: ", "K.swapaxes(-1, -2)"),
    ("scores", "return query @ key.T"): ("transposed-all-axes", ".T turns all axes round", "key.swapaxes(-1, -2)"),
    ("query-key-value", "return weights['key.weight'] @ x"): ("product-order", "x @ weights['key.weight']"),
    ("feed-forward", "return x @ weights['hidden.weight'].T"): ("transposed", "Leave out the .T"),
    ("backward", "return np.ones((11, 28)) @ weight, 0, 0"): (
        "not-transposed",
        "Should weight be transposed, weight.T",
    ),
    ("backward", "return x @ np.ones((11, 28)), 0, 0"): ("not-transposed", "Should x be transposed, x.T @ "),
    ("scores", "return query @ key.transpose(0, 2, 1)[:3]"): (None, "the axes in front, as of the heads"),
    ("scores", "return query + key[0, 0, :3]"): (
        None,
        "4 × 9 × 8 and 3 do not fit cell by cell",
    ),
    ("softmax", "return masked - masked.max(axis=-1)"): ("keepdims-missing", "with keepdims=True"),
    ("query-key-value", "return x @ weights['query']"): (None, "weights has no 'query': it has query.", ".weight"),
    ("scores", "return {}['query']"): (None, "KeyError: 'query'"),
    ("scores", "raise ValueError('mine')"): (None, "line 6: ValueError: mine"),
}


@pytest.mark.parametrize(("name", "lines"), PRODUCTS)
def test_shapes_that_do_not_go_together_are_said_with_what_to_do(answer: Check, name: str, lines: str) -> None:
    says(answer(name, lines), *PRODUCTS[name, lines])


# Shapes

JOINED = """f = lambda n: x @ weights[n + '.weight'] + weights[n + '.bias']
return f('query'), f('key'), f('value')"""

TURNED = {
    ("query-key-value", JOINED): (
        "shape",
        "query has the shape 9 × 32: it should be 4 × 9 × 8 (head",
        ".reshape(9, 4, 8).transpose(1, 0, 2) puts them in place",
    ),
    ("mask", "return np.where(np.triu(np.ones((13, 13), bool), 1), -np.inf, scaled).reshape(-1)"): (
        "shape",
        "The numbers are right: .reshape(4, 13, 13) gives them their axes",
    ),
    ("embed", "return (table[ids] * np.sqrt(32)).T"): ("shape", "another order of axes: .transpose(1, 0) puts them"),
    ("embed", "return table[ids][:, :7]"): (None, "embedded has the shape 9 × 7: it should be 9 × 32 (token ×"),
}


@pytest.mark.parametrize(("name", "lines"), TURNED)
def test_another_shape_of_the_right_numbers_is_said_with_the_way_back(answer: Check, name: str, lines: str) -> None:
    says(answer(name, lines), *TURNED[name, lines])


BACKWARD = """
import importlib.util
spec = importlib.util.spec_from_file_location("right", {path!r})
right = importlib.util.module_from_spec(spec)
spec.loader.exec_module(right)
given = (x, weight, bias, ids)
"""


def backward(last: str, file: str = "solution") -> str:
    folder = COURSE.find("backward").folder
    return BACKWARD.strip().format(path=str(folder / f"{file}.py")) + "\n" + last


def test_answers_in_another_order_are_named(answer: Check) -> None:
    lines = backward("a, b, c = right.backward(*given)\nreturn c, b, a")
    order = "at_weight has the numbers of at_x: return at_weight, at_bias, at_x, in this order"
    says(answer("backward", lines), "answers-order", order)


def test_a_mistake_is_named_only_where_all_answers_are_mistaken_so(answer: Check) -> None:
    lines = backward("a, b, c = right.upwards(*given)\nd, e, f = right.not_divided(*given)\nreturn a, e, f", "mistakes")
    says(answer("backward", lines), None, "at_weight differs", "every cell has the opposite sign")
    says(answer("backward", backward("return right.upwards(*given)", "mistakes")), "gradient-sign")


def test_answers_that_are_wrong_after_a_right_one_are_said(answer: Check) -> None:
    lines = backward("a, b, c = right.backward(*given)\nreturn a, b, 2 * c")
    finding = answer("backward", lines)
    says(finding, None, "at_x differs (relative 1)", "every cell is twice the right one")
    assert finding.place.startswith("at_x[")


# Factors

FACTORS = {
    ("embed", "return table[ids] * 32"): "every cell is 5.65685 = √32 = √d_model times the right one",
    ("embed", "return table[ids] * np.sqrt(9)"): "0.53033 = √9 ÷ √32 = √(number of tokens) ÷ √d_model times",
    ("embed", "return table[ids] * -np.sqrt(32)"): "every cell has the opposite sign",
}


@pytest.mark.parametrize(("name", "line"), FACTORS)
def test_a_factor_is_said_in_the_numbers_of_the_model(answer: Check, name: str, line: str) -> None:
    says(answer(name, line), None, FACTORS[name, line])


def test_a_division_by_a_whole_number_is_named_with_the_root(answer: Check) -> None:
    says(answer("scores", "return query @ key.swapaxes(1, 2) / 2"), "scale-integer", "by √d_k = √8 = 2.82843")


def test_of_a_single_number_a_factor_is_said_only_where_it_has_a_name(answer: Check) -> None:
    rows = "r = logits[:-1] - logits[:-1].max(-1, keepdims=True)\nl = r - np.log(np.exp(r).sum(-1, keepdims=True))\n"
    loss = rows + "loss = -l[np.arange(len(r)), ids[1:]].mean()\n"
    says(answer("cross-entropy", loss + "return 3 * loss / 2"), None, "No known mistake explains it.")
    says(answer("cross-entropy", loss + "return 2 * loss"), None, "it is twice the right one")
    words = "it is 1.08333 = 13 ÷ 12 = number of tokens ÷ number of counted positions times the right one"
    says(answer("cross-entropy", loss + "return loss * 13 / 12"), None, words)


def test_no_factor_is_said_where_there_is_none(answer: Check) -> None:
    says(answer("embed", "return table[ids] ** 2"), None, "No known mistake explains it.")


# Precision


def test_a_mistake_that_rounding_could_be_is_named_where_float64_shows_it(answer: Check) -> None:
    norm = (
        "r = x + y\nm = (r - r.mean(-1, keepdims=True)) / np.sqrt(r.var(-1, keepdims=True){}) * gamma + beta\nreturn {}"
    )
    says(answer("add-and-norm", norm.format("", "m")), "norm-epsilon", "Nearly: right to 2e-06", "It matches without ε")
    assert answer("add-and-norm", norm.format(" + epsilon", "m")).passed
    assert answer("add-and-norm", norm.format(" + epsilon", "m.astype(np.float32)")).passed
    assert answer("add-and-norm", norm.format(" + epsilon * 0.9", "m")).passed  # rounding, as far as can be known
