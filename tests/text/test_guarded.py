"""Files of tokenizers that would take any time or memory: refused in one line, and nothing else is written."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from refusing import refuses

from tui_transformer.errors import InputError
from tui_transformer.text import guarded
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.encoding import Pairs, Tokenizer
from tui_transformer.text.gguf_pre_tokenizers import PRE_TOKENIZERS
from tui_transformer.text.guarded import Guarded

needs_processes = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes")

SECONDS = 1.0
"""What a request may take here."""

SLOW = r"[ab]*[ab]*\z"
"""Takes n² steps at every of n places: the library stops none of them."""


def replace(pattern: str, content: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def sequence(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(parts)}


def _to_text(start: int) -> list[int]:
    """A trie with one letter, b, which becomes the text at this place."""
    place, offset = 1 ^ ord("b"), 300
    units = {0: 1 << 10, place: ord("b") | offset << 10 | 0x100, place ^ offset: 0x80000000 | start}
    return [units.get(i, 0) for i in range(768)]


def split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def written(path: Path, **parts: Any) -> Path:
    whole = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"}
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model, **whole, **parts}))
    return path


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(guarded, "SECONDS", SECONDS)


TWO_HUNDRED = replace("a", "a" * 200)
GROWING = {
    "five times": sequence(*[TWO_HUNDRED] * 5),
    "in sequences": sequence(sequence(*[TWO_HUNDRED] * 3), sequence(*[TWO_HUNDRED] * 2)),
    "by expressions": sequence(*[replace(".", "a" * 200, "Regex")] * 5),
    "put in front": sequence({"type": "Prepend", "prepend": "a" * 100_000}, *[TWO_HUNDRED] * 2),
    "at once": replace("a", "a" * 5_000_000),
}


@pytest.mark.parametrize("how", GROWING)
def test_a_normalizer_that_makes_the_text_grow_is_stopped_at_a_length(tmp_path, how, capfd):
    path = written(tmp_path / "tokenizer.json", normalizer=GROWING[how])
    refuses(r"tokenizer\.json .* longer than 4,194,304 characters", lambda: load_vocabulary(path))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("part", "regex"), [("pre_tokenizer", "(a+)+$"), ("normalizer", "(a|aa)+$"), ("pre_tokenizer", SLOW)]
)
def test_an_expression_that_backtracks_is_refused_in_one_line_and_the_library_says_nothing(
    tmp_path, part, regex, capfd, monkeypatch
):
    component = split(regex) if part == "pre_tokenizer" else replace(regex, "c", "Regex")
    tokenizer = tokenizer_for(load_vocabulary(written(tmp_path / "tokenizer.json", **{part: component})))
    assert tokenizer.encode("a").ids
    monkeypatch.setattr(guarded, "SECONDS", 0.2)  # its process has begun
    refuses(r"retry-limit|backtracks", lambda: tokenizer.encode("a" * (3000 if regex == SLOW else 60) + "!"))
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(guarded, "SECONDS", SECONDS)
    assert len(tokenizer.encode("a").ids) == 1  # and goes on


def test_memory_that_is_taken_by_a_decoder_is_bounded(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(guarded, "MEMORY", 1 << 28)
    grows = replace("a", "a" * 30_000)
    path = written(tmp_path / "tokenizer.json", decoder={"type": "Sequence", "decoders": [grows] * 2})
    refuses("of memory", lambda: tokenizer_for(load_vocabulary(path)).decode([1]))
    assert capfd.readouterr() == ("", "")


def charsmap(*units: int, texts: bytes = b"a\0") -> dict[str, str]:
    """A table of characters: the trie as it is packed, and the texts."""
    data = struct.pack(f"<{len(units) + 1}I", 4 * len(units), *units) + texts
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


LEADS = [1 << 10 if i == 0 else 0 for i in range(512)]
"""A trie that leads nowhere; its root has the offset 1."""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (charsmap(0x7FFFFFFF), "leads behind its end"),
        (charsmap(*LEADS[:100]), "leads behind its end"),
        (
            charsmap(*[ord("b") | 0x1FF << 10 | 0x200 if i == 1 ^ ord("b") else each for i, each in enumerate(LEADS)]),
            "leads behind its end",
        ),
        (charsmap(*_to_text(77)), "leads into no text"),
        (charsmap(*_to_text(1), texts="é\0".encode()), "leads into no text"),
        (charsmap(*LEADS, texts=b"a" * 65 + b"\0"), "longer than 64 bytes"),
        (charsmap(*LEADS) | {"precompiled_charsmap": "AAAAAAAA////fw=="}, "is cut"),
        (charsmap(*LEADS) | {"precompiled_charsmap": "?"}, "no tokenizer that can be read"),
    ],
)
def test_a_broken_table_of_characters_is_refused_and_the_library_says_nothing(tmp_path, table, said, capfd):
    path = written(tmp_path / "tokenizer.json", normalizer=table)
    refuses(rf"tokenizer\.json .*{said}", lambda: load_vocabulary(path))
    assert capfd.readouterr() == ("", "")


def test_a_table_of_characters_is_used_and_what_is_put_around_every_text_is_bounded(tmp_path):
    path = written(tmp_path / "tokenizer.json", normalizer=charsmap(*_to_text(0)))
    vocabulary = load_vocabulary(path)
    assert not isinstance(vocabulary.rust, Guarded)
    assert tokenizer_for(vocabulary).encode("b").ids == (1,)
    many = {"id": "a", "ids": [1] * 1000, "tokens": ["a"] * 1000}
    single = [{"SpecialToken": {"id": "a", "type_id": 0}}] * 50 + [{"Sequence": {"id": "A", "type_id": 0}}]
    frame = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {"a": many}}
    assert isinstance(load_vocabulary(written(path, post_processor=frame)).rust, Guarded)


def test_a_decoder_that_cuts_more_than_there_is_says_nothing(tmp_path, capfd):
    for cut in ({"start": 10**9, "stop": 0}, {"start": 0, "stop": 2}):
        path = written(tmp_path / "tokenizer.json", decoder={"type": "Strip", "content": "a", **cut})
        with contextlib.suppress(InputError):
            assert tokenizer_for(load_vocabulary(path)).decode([1]) == ""
        assert capfd.readouterr() == ("", "")


def test_expressions_too_long_to_be_compiled_are_refused_before(tmp_path):
    path = written(tmp_path / "tokenizer.json", pre_tokenizer=split("(?i:" + "ß" * 20_000 + ")"))
    whole = path.read_text()
    for key in ('"Regex"', r'"\u0052egex"', r'"Re\u0067ex"'):
        path.write_text(whole.replace('"Regex"', key))
        refuses(r"tokenizer\.json .*regular expressions have 20,005 characters", lambda: load_vocabulary(path))


GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


PUBLISHED = (
    {},
    {"normalizer": sequence({"type": "NFKC"}, {"type": "Lowercase"}, replace(" ", "▁"))},
    {"normalizer": replace(r" {2,}", "▁", "Regex")},
    {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}},
    {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
    {"pre_tokenizer": split(GPT4)},
    *({"pre_tokenizer": split(each)} for each in PRE_TOKENIZERS["deepseek-v3"].patterns),
)


def test_what_published_tokenizers_do_is_done_here(tmp_path):
    for parts in PUBLISHED:
        path = written(tmp_path / "tokenizer.json", **parts)
        assert not isinstance(load_vocabulary(path).rust, Guarded), parts


def test_a_tokenizer_in_a_process_of_its_own_gives_what_it_gives_here(tmp_path, monkeypatch):
    frame = [{"SpecialToken": {"id": "b", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*frame, {"Sequence": {"id": "B", "type_id": 1}}]
    special = {"b": {"id": "b", "ids": [2], "tokens": ["b"]}}
    template = {"type": "TemplateProcessing", "single": frame, "pair": pair, "special_tokens": special}
    parts = {"pre_tokenizer": split(r"\s|(?=b)"), "normalizer": replace("ß", "ss"), "post_processor": template}
    apart = load_vocabulary(written(tmp_path / "tokenizer.json", **parts))
    monkeypatch.setattr(guarded, "KNOWN", guarded.KNOWN | {r"\s|(?=b)"})
    here = load_vocabulary(tmp_path / "tokenizer.json")
    assert isinstance(apart.rust, Guarded)
    assert not isinstance(here.rust, Guarded)
    one, other = tokenizer_for(apart), tokenizer_for(here)
    assert isinstance(one, Pairs)
    assert isinstance(other, Pairs)
    for text in ("a b", "", "ßa 😊 ab a", "a\n\u2028b"):
        assert one.encode(text) == other.encode(text)
        assert one.encode(text, max_tokens=2, cut=True) == other.encode(text, max_tokens=2, cut=True)
        assert one.pair(text, "b a") == other.pair(text, "b a")
    assert one.decode([1, 2, 0]) == other.decode([1, 2, 0])
    assert apart.file() == here.file()
    again = pickle.loads(pickle.dumps(apart))  # noqa: S301 - as it is sent to processes
    assert tokenizer_for(again).encode("a b").ids == one.encode("a b").ids


class Held(NamedTuple):
    """A tokenizer that a text holds up for as long as it may, and the one that has its process."""

    tokenizer: Tokenizer
    apart: Guarded

    def refused(self, text: str) -> str:
        """What is said instead of an encoding; "" where there is one."""
        try:
            self.tokenizer.encode(text)
        except InputError as error:
            return str(error)
        return ""

    def works(self) -> bool:
        """Whether its process does."""
        process = self.apart._process
        return process is not None and _busy(process.pid) > 0.2


@pytest.fixture
def held(tmp_path, monkeypatch) -> Iterator[Held]:
    monkeypatch.setattr(guarded, "SECONDS", 20.0)
    monkeypatch.setattr(guarded, "_over", threading.Event())
    vocabulary = load_vocabulary(written(tmp_path / "tokenizer.json", pre_tokenizer=split(SLOW)))
    yield Held(tokenizer_for(vocabulary), vocabulary.rust)
    guarded.ask_again()
    vocabulary.rust.end()


HOLDS_IT_UP = "a" * 3000 + "!"
STOPPED = "stopped before it had an answer"


@contextlib.contextmanager
def meanwhile(*work: Callable[[], object]) -> Iterator[list[Future[Any]]]:
    """Work on other threads, which has ended at the end."""
    with ThreadPoolExecutor(len(work)) as threads:
        yield [threads.submit(each) for each in work]


def after(holds: Callable[[], bool], then: Callable[[], object]) -> Callable[[], None]:
    """Work that begins once something holds."""

    def work() -> None:
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)
        then()

    return work


@needs_processes
@pytest.mark.parametrize("for_good", [False, True])
def test_whoever_waits_for_a_tokenizer_is_told_when_all_are_ended(held, for_good):
    end = partial(guarded.end_guarded, for_good=for_good)
    with meanwhile(lambda: held.refused(HOLDS_IT_UP), after(held.works, end)) as (answer, ended):
        assert ended.result() is None
        assert STOPPED in answer.result()
    assert (STOPPED in held.refused("a")) == for_good  # where the program goes on, another process is begun


@needs_processes
def test_the_main_thread_alone_gives_up_and_asks_again_when_it_is_told(held):
    with meanwhile(after(held.works, guarded.end_awaited)):
        assert STOPPED in held.refused(HOLDS_IT_UP)
    assert not guarded.is_awaited()
    assert STOPPED in held.refused("a")
    with meanwhile(lambda: held.refused("a")) as (answer,):
        assert answer.result() == ""
    guarded.ask_again()
    assert held.refused("a") == ""
    guarded.end_awaited()  # while nobody waits
    assert held.refused("a") == ""


@needs_processes
def test_the_main_thread_does_not_wait_behind_another_either(held):
    with meanwhile(lambda: held.refused(HOLDS_IT_UP), after(guarded.is_awaited, guarded.end_awaited)) as (answer, _):
        after(held.works, lambda: None)()
        assert STOPPED in held.refused(HOLDS_IT_UP)
        assert STOPPED in answer.result()


@needs_processes
def test_sigterm_ends_a_tokenizer_that_backtracks_at_once(tmp_path):
    written(tmp_path / "tokenizer.json", pre_tokenizer=split(SLOW))
    command = [sys.executable, "-m", "tui_transformer", "show", "tokens", "--model", "encoder"]
    given = ["--vocab", str(tmp_path / "tokenizer.json"), "--text", "a" * 3000 + "!"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([*command, *given], stderr=subprocess.PIPE, text=True, env=environment) as process:
        child = _child(process.pid)
        begun = _busy(child)
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            with contextlib.suppress(OSError):  # it has ended
                assert _busy(child) - begun < 2.5  # of the processor: far less than it may take
            time.sleep(0.01)
        assert process.returncode == 143
        assert process.stderr is not None
        assert process.stderr.read() == "tui-transformer: show was ended by SIGTERM\n"
    assert not Path(f"/proc/{child}").exists()


def _child(parent: int) -> int:
    """The process that a process started, once it works."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        looked = ["pgrep", "-P", str(parent), "-f", "guarded_child"]
        found = subprocess.run(looked, capture_output=True, text=True, check=False)
        if found.stdout and _busy(int(found.stdout)) > 0.2:
            return int(found.stdout)
        time.sleep(0.05)
    raise AssertionError("it was not started")


def _busy(process: int) -> float:
    """Seconds of the processor that a process has used."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
