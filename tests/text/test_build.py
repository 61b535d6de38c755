"""Vocabularies built from text: order, limits, and that they open again with the same cutting."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses

from tui_transformer.errors import InputError, UsageError
from tui_transformer.text import build, files
from tui_transformer.text.build import SPECIALS, WordCounts, build_bpe, build_characters, build_words
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.files import read_lines
from tui_transformer.text.vocabulary_rules import Specials

SPECIAL = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
LINES = ["The cat sat, the dog ran.\n", "A Bird isn't the cat!\n"]
TAGS = Specials("<pad>", "<unk>", "<s>", "</s>")


def test_words_come_by_frequency_and_equal_ones_in_the_order_in_which_they_appear() -> None:
    built = build_words(LINES, 100)
    rest = ("the", "cat", "sat", ",", "dog", "ran", ".", "a", "bird", "isn't", "!")
    words = built.vocabulary
    assert words.words == SPECIAL + rest
    assert (words.pad_id, words.unknown_id, words.begin_id, words.end_id) == (0, 1, 2, 3)
    assert words.special_ids == {0, 1, 2, 3}
    # a text is cut by them as it was counted
    encoding = tokenizer_for(words).encode("".join(LINES))
    assert not any(token.unknown for token in encoding.tokens)
    assert len(encoding.tokens) == built.tokens


def test_size_counts_the_special_words_and_counts_and_coverage_are_those_of_the_text() -> None:
    built = build_words(LINES, 6)
    assert built.vocabulary.words == (*SPECIAL, "the", "cat")
    assert built.counts == (0, 0, 0, 0, 3, 2)
    assert (built.tokens, built.distinct) == (14, 11)
    assert built.coverage == 5 / 14
    # rare words are left out, and those longer than an entry can be
    assert build_words(LINES, 100, min_frequency=2).vocabulary.words == (*SPECIAL, "the", "cat")
    built = build_words(["x" * 2_000 + " a"], 10)
    assert (built.vocabulary.words[4:], built.tokens) == (("a",), 2)
    # special words in the text are counted as such
    built = build_words(["[BOS] a b [EOS] a"], 100)
    assert built.vocabulary.words == (*SPECIAL, "a", "b")
    assert built.counts == (0, 0, 1, 1, 2, 1)


def test_characters_keep_case_spaces_and_line_breaks() -> None:
    words = build_characters(["ab a\n", "B\\a\n"], 100).vocabulary
    assert words.words == (*SPECIAL, "a", "\n", "b", " ", "B", "\\")
    tokenizer = tokenizer_for(words)
    encoding = tokenizer.encode("a B\n[EOS]ü")
    assert encoding.ids == (4, 7, 8, 5, 3, 1)
    assert [(token.start, token.end) for token in encoding.tokens][-2:] == [(4, 9), (9, 10)]
    assert (encoding.tokens[-1].unknown, encoding.tokens[-1].text) == (True, "ü")
    assert tokenizer.decode(encoding.ids[:5]) == "a B\n[EOS]"
    assert [words.reading(i) for i in (4, 5, 7)] == ["a", "line break", "a space"]
    # too many are refused or cut
    refuses("3 tokens, the limit is 2", lambda: tokenizer.encode("abB", max_tokens=2))
    cut = tokenizer.encode("abB", max_tokens=2, cut=True)
    assert (cut.ids, cut.cut) == ((4, 6), 1)


def test_special_words_are_told_from_characters() -> None:
    tokens = tokenizer_for(build_characters(["ab"], 100).vocabulary).encode("a[PAD]bz").tokens
    assert [token.text for token in tokens] == ["a", "[PAD]", "b", "z"]
    assert [token.special for token in tokens] == [False, True, False, False]
    assert [token.unknown for token in tokens] == [False, False, False, True]
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (1, 6), (6, 7), (7, 8)]


def test_byte_pairs_write_every_text_and_learn_from_a_word_of_a_million_letters_in_parts() -> None:
    built = build_bpe(LINES * 5, 280, 2)
    words = built.vocabulary
    assert (words.words[:4], words.size, built.coverage) == (SPECIAL, 280, 1.0)
    tokenizer = tokenizer_for(words)
    encoding = tokenizer.encode("the cat 😊")
    assert tokenizer.decode(encoding.ids) == "the cat 😊"
    assert "Ġcat" in [token.text for token in encoding.tokens]
    built = build_bpe(["a" * 1_000_000 + "\n", "the cat\n"], 300).vocabulary
    tokenizer = tokenizer_for(built)
    assert tokenizer.decode(tokenizer.encode("aaaa the cat").ids) == "aaaa the cat"
    assert "a" * 512 in built.words


@pytest.mark.parametrize("specials", [SPECIALS, TAGS])
@pytest.mark.parametrize("build", [build_words, build_characters, build_bpe])
def test_a_built_vocabulary_opens_again_and_cuts_the_same(build, specials: Specials, tmp_path: Path) -> None:
    made = build([*LINES, "  \ttabs\u2028and \u202e marks \\n #!vocabulary\n"], 300, 1, specials).vocabulary
    name, written = made.file()
    (tmp_path / name).write_text(written, encoding="utf-8")
    again = load_vocabulary(tmp_path / name)
    text = "".join(LINES) + f"{specials.begin} unseen ☃ \\n"
    assert (again.words, again.kind, again.special_ids) == (made.words, made.kind, made.special_ids)
    assert (again.pad_id, again.begin_id, again.end_id) == (made.pad_id, made.begin_id, made.end_id) == (0, 2, 3)
    assert tokenizer_for(again).encode(text) == tokenizer_for(made).encode(text)


@pytest.mark.parametrize(
    ("error", "build", "given", "problem"),
    [
        (UsageError, build_words, (LINES, 4), "size 4 is not 5 to"),
        (UsageError, build_words, (LINES, 0), "size 0"),
        (UsageError, build_words, (LINES, 9_000_000), "size 9000000"),
        (UsageError, build_words, (LINES, 10, 0), "min_frequency 0"),
        *((InputError, build, ([], 1_000), "the text has no") for build in (build_words, build_characters, build_bpe)),
        (InputError, build_words, (["the cat"], 100, 9), "no word of the text comes 9 times: use a smaller minimum"),
        (InputError, build_characters, (["the cat"], 100, 9), "no character of the text comes 9 times: use a"),
        (UsageError, Specials, ("a", "b1", "b2", "b3"), "special word"),
        (UsageError, Specials, ("[A]", "[A]", "[B]", "[C]"), "special word"),
        (UsageError, Specials, ("[A B]", "[C]", "[D]", "[E]"), "special word"),
    ],
)
def test_what_cannot_be_built_is_refused(error, build, given, problem) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        build(*given)
    assert refused.type is error


def test_counts_are_exact_however_little_memory_they_take(monkeypatch) -> None:
    lines = [f"w{i * i % 101} w{i % 7} é{i % 50}" for i in range(1_000)]
    whole = build_words(lines, 60, 2)
    monkeypatch.setattr(build, "TOGETHER", 100)
    monkeypatch.setattr(build, "MOST_IN_MEMORY", 20)
    spilled = build_words(lines, 60, 2)
    assert (spilled.vocabulary.words, spilled.counts) == (whole.vocabulary.words, whole.counts)
    assert (spilled.tokens, spilled.distinct) == (whole.tokens, whole.distinct)
    assert whole.distinct == len(set(" ".join(lines).split()))
    # a table that grows too large goes to a file
    with WordCounts(2) as counts:
        for letters in ("cab", "bad", "b"):
            counts.add(Counter(letters))
        assert len(counts.runs) == 2
        assert counts.most_common(2).words == (("b", 3), ("a", 2))

    # which may have no room
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build.tempfile, "TemporaryFile", full)
    with WordCounts(1) as counts, pytest.raises(InputError, match="No space left on device"):
        counts.add(Counter("ab"))


BUILT = """
from tui_transformer.text.build import build_bpe, build_words
lines = ["the cat sat on the mat", "a dog and a cat ran"] * 3
print(build_words(lines, 12).vocabulary.words, build_bpe(lines, 300).vocabulary.words)
"""


def test_builds_are_the_same_in_every_process() -> None:
    other = {"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", BUILT], env=other, capture_output=True, text=True, check=True)
    lines = ["the cat sat on the mat", "a dog and a cat ran"] * 3
    words, pairs = build_words(lines, 12).vocabulary.words, build_bpe(lines, 300).vocabulary.words
    assert ended.stdout == f"{words} {pairs}\n"


def test_files_are_read_line_by_line_whatever_their_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 3)
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_bytes("\ufeffé one\r\ntwo".encode())
    second.write_bytes("\n😊".encode())
    seen: list[int] = []
    assert list(read_lines([first, second], seen.append)) == ["é one\n", "two", "\n", "😊"]
    assert sum(seen) == first.stat().st_size + second.stat().st_size
    # one that never ends comes in parts
    first.write_text("one two three four" + "x" * 20)
    parts = list(read_lines([first], longest=8))
    assert "".join(parts) == first.read_text()
    assert parts[0] == "one two "
    assert max(map(len, parts)) == 8


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a\x00b", r"is binary \(byte 1 is NUL\)"),
        (b"abc\xff", r"is not UTF-8 \(at byte 3\)"),
        (b"abc\xc3", r"is not UTF-8 \(at byte 3\)"),
        (None, "No such file"),
    ],
)
def test_files_that_are_no_text_are_refused(data: bytes | None, problem: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "a.txt").write_bytes(data)
    refuses(problem, lambda: list(read_lines([tmp_path / "a.txt"])))
    refuses("is a folder", lambda: list(read_lines([tmp_path])))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#!vocabulary letters\na", "its first line says 'letters'"),
        ("#!vocabulary words end\na", r"has no \[UNK\]|cannot be a special word"),
        ("#!vocabulary words what=x\na", "its first line says 'what'"),
        ("#!vocabulary characters\na\nb", r"has no \[UNK\]"),
        ("#!vocabulary characters\n[UNK]\n\\q", "begins no escape"),
        ("#!vocabulary characters\n[UNK]\n\\Uffffffff", "is no character"),
        ("#!vocabulary characters\n", "holds no words"),
    ],
)
def test_headers_that_cannot_be_read_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.txt"
    path.write_text(text)
    refuses(problem, lambda: load_vocabulary(path))


def test_a_signal_is_heard_while_byte_pairs_are_learned() -> None:
    ended = threading.Event()

    def work(wanted: Callable[[object], bool]) -> None:
        while wanted(None):
            time.sleep(0.001)
        ended.set()

    def interrupt(_number: int, _frame: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(InterruptedError):
            build.interruptible(work)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(60), "the work goes on"
