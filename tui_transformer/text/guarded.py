"""Tokenizers whose file could make them take any time or memory, run in a process of their own within limits.

Most files describe what published tokenizers do, which is run here. Regular expressions that are not known may
backtrack, and replacements may make a text grow; the library holds the interpreter meanwhile, so that no signal is
heeded, and writes its panics to standard error. A process can be ended, and what it writes there is not shown.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import re
import signal
import subprocess
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.gate import GUARDED
from tui_transformer.text.gguf_pre_tokenizers import AFTER, GPT2, PATTERNS, cased

if TYPE_CHECKING:
    import tokenizers

MEMORY = 2 << 30
SECONDS, MORE, BUSY = 5.0, 1e-5, 4.0
"""Of the processor, for a request: all, and more for every character or ID; and how many times as long by the clock,
where others use the processor."""

UNANSWERED = "it was stopped before it had an answer"

_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
KNOWN = PATTERNS | {
    r"\s+",
    r" {2,}",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{AFTER}",
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{AFTER}",
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    rf"{GPT2}|\s+",
    cased(r"\p{N}{1,3}", f"{_ENDINGS}?"),
}
"""Regular expressions of published tokenizers, which do not backtrack."""

LONGEST_REGEXES = 10_000
PRINTABLE = re.compile(r"\\u00[2-7]")
"""Letters that nobody writes as escapes, but to hide what a key is."""

MOST_GROWTH, MOST_ADDED, LONGEST_WORD = 8, 64, 1000
"""Times that replacements may make a text longer; characters or tokens that are put before or around any text;
characters of a word that is cut into pieces."""


_PROCESSES = weakref.WeakSet["subprocess.Popen[str]"]()
_STOPPED = weakref.WeakSet["subprocess.Popen[str]"]()
_awaited: Guarded | None = None
"""What the main thread waits for: on it is the screen, which shows nothing meanwhile."""
_over, _unwanted = threading.Event(), threading.Event()
"""Nothing is asked any more: by nobody, and by the main thread."""


def end_guarded(*, for_good: bool = False) -> None:
    """End all processes: whoever waits for one is told at once that there is no answer.

    As the program ends `for_good`, no other one is begun either.
    """
    if for_good:
        _over.set()
    for process in tuple(_PROCESSES):
        _stop(process)


def is_awaited() -> bool:
    """True if the main thread waits for an answer."""
    return _awaited is not None


def end_awaited() -> None:
    """Give the main thread no answer if it waits for one, nor to what it asks until `ask_again`; from any thread."""
    awaited = _awaited
    if awaited is not None:
        _unwanted.set()
        awaited.end()


def ask_again() -> None:
    """Let the main thread have answers again."""
    _unwanted.clear()


def _stop(process: subprocess.Popen[str]) -> None:
    _STOPPED.add(process)
    process.kill()


def guarded(rust: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The tokenizer itself where it does what those of published models do, else the same in a process of its own."""
    return rust if _is_tame(rust) else cast("tokenizers.Tokenizer", Guarded(rust))


class Guarded:
    """A tokenizer that encodes and decodes in a process of its own; all else is that of the tokenizer here.

    Raises:
        RuntimeError: By what the process does: an encoding fails, or takes more time or memory than it may.
    """

    def __init__(self, rust: tokenizers.Tokenizer) -> None:
        self._rust, self._turn = rust, threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def __reduce__(self) -> tuple[type[Guarded], tuple[tokenizers.Tokenizer]]:
        return Guarded, (self._rust,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rust, name)

    def encode(self, *texts: str) -> Any:
        """The encoding of a text, or of a pair of texts."""
        return SimpleNamespace(**self._asked({"encode": texts}, sum(map(len, texts))))

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """The text of IDs; special ones are written too."""
        del skip_special_tokens
        return str(self._asked({"decode": ids}, len(ids))["text"])

    def end(self) -> None:
        """End the process; whoever asks again has another."""
        process = self._process
        if process is not None:
            _stop(process)

    def _asked(self, request: Mapping[str, Any], size: int) -> Mapping[str, Any]:
        """One request after the other is answered; it is known what the main thread waits for."""
        global _awaited
        here = threading.current_thread() is threading.main_thread()
        try:
            if here:
                _awaited = self
            with self._turn:
                if _over.is_set() or (here and _unwanted.is_set()):
                    raise RuntimeError(UNANSWERED)
                if self._process is None:
                    self._start()
                answer = self._answer(request, SECONDS + MORE * size)
        finally:
            if here:
                _awaited = None
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - Python itself, with a path of our own
            [*GUARDED, str(MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )
        weakref.finalize(self, _end, self._process)
        _PROCESSES.add(self._process)
        self._answer({"file": self._rust.to_str()}, 2 * SECONDS)

    def _answer(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """What the process says; where that is nothing, or not in time, it is ended, and the next one begins anew."""
        process, late = self._process, threading.Event()
        assert process is not None and process.stdin is not None and process.stdout is not None  # noqa: S101, PT018

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(BUSY * seconds, end)
        timer.daemon = True
        timer.start()
        answer: Mapping[str, Any] | None = None
        try:
            process.stdin.write(json.dumps({**request, "seconds": seconds}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer = json.loads(line) if line.endswith("\n") else None
        except OSError:  # it has ended
            pass
        finally:
            timer.cancel()
            if answer is None:
                self._process = None
                _end(process)
        if answer is None and process in _STOPPED:
            raise RuntimeError(UNANSWERED)
        if answer is None:
            raise RuntimeError(
                f"it takes longer than {seconds:.0f} s: a regular expression of its file backtracks, or the text grows"
                if late.is_set() or process.returncode == -getattr(signal, "SIGXCPU", 0)
                else f"it takes more than {MEMORY >> 20:,} MiB of memory, as the text grows"
            )
        return answer


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not written is lost with the process
                pipe.close()


# What a file may ask for


def check_parts(text: str) -> None:
    """Check what the library would take much time and memory for, or panic at, while it reads a file.

    Raises:
        ValueError: Regular expressions are longer than those of any tokenizer; a table of characters is broken.
    """
    if PRINTABLE.search(text):
        with contextlib.suppress(ValueError, RecursionError):  # which the library says better
            text = json.dumps(json.loads(text), ensure_ascii=False)
    length = sum(map(len, _texts_of("Regex", text)))
    if length > LONGEST_REGEXES:
        raise ValueError(f"its regular expressions have {length:,} characters, and {LONGEST_REGEXES:,} are compiled")
    for table in _texts_of("precompiled_charsmap", text):
        check_charsmap(base64.b64decode(table, validate=True))


def _texts_of(key: str, text: str) -> Iterator[str]:
    for match in re.finditer(rf'"{key}"\s*:\s*(?=")', text):
        with contextlib.suppress(ValueError):
            yield json.JSONDecoder().raw_decode(text, match.end())[0]


def _is_tame(rust: tokenizers.Tokenizer) -> bool:
    """Whether its parts take time and memory in proportion to the text."""
    before, after = [*parts_of(rust.normalizer)], [*parts_of(rust.decoder)]
    parts = [*before, *parts_of(rust.pre_tokenizer), *after]
    regexes = {part["pattern"].get("Regex") for part in parts if isinstance(part.get("pattern"), dict)} - {None}
    added = sum(len(part.get("prepend", "")) for part in parts)
    for around in parts_of(rust.post_processor):
        if around.get("type") == "TemplateProcessing":
            sizes = {name: len(token["ids"]) for name, token in around["special_tokens"].items()}
            names = (
                each["SpecialToken"]["id"] for each in (*around["single"], *around["pair"]) if "SpecialToken" in each
            )
            added += sum(sizes.get(name, 1) for name in names)
    word = getattr(rust.model, "max_input_chars_per_word", 0)
    lengths = [part["length"] for part in parts if part.get("type") == "FixedLength"]
    stripped = [max(part["start"], part["stop"] * LONGEST_WORD) for part in after if "stop" in part]
    return (
        regexes <= KNOWN
        and added <= MOST_ADDED
        and max(_growth(before), _growth(after)) <= MOST_GROWTH
        and word <= LONGEST_WORD
        and min(lengths, default=1) > 0
        and max(stripped, default=0) <= MOST_ADDED
    )


def _growth(parts: Sequence[Mapping[str, Any]]) -> float:
    """How many times longer a text may become."""
    growth = 1.0
    for part in parts:
        if part.get("type") == "Replace":
            pattern = part["pattern"].get("String")
            growth *= max(1.0, len(part["content"]) / max(1, len(pattern or "")))
    tables = sum(part.get("type") == "Precompiled" for part in parts)  # the first has its own limit
    return growth * math.pow(LONGEST, max(0, tables - 1))


def parts_of(component: Any) -> Iterator[Mapping[str, Any]]:
    """A component of a tokenizer and those inside it, as the file describes them."""
    whole = None if component is None else json.loads(component.__getstate__())
    waiting = [whole] if isinstance(whole, dict) else []
    while waiting:
        yield (part := waiting.pop())
        for key in ("normalizers", "processors", "pretokenizers", "decoders"):
            waiting.extend(part.get(key, ()))


PUBLISHED = frozenset(
    {
        "1e2c7b43d3ee9755ceaa2ac335e253d8703604e0249ee1e81156c92b46423844",
        "7e46d9e08af4b6a37991b04fb8388644c1595a0abcd0f26d6a5d575e2a3663ea",
        "2c03512e62f9ed965ec90d85314211b63b5b8aa0395311ea2147eec9ff738907",
        "d8dfef3d6db0eef0742f8b55a73aee7fce6c1e21d26a09b8d3d4b52c42a791cb",
    }
)
"""SHA-256 of nmt_nfkc, nfkc, nmt_nfkc_cf and nfkc_cf, as SentencePiece has them."""

LONGEST = 64
"""Bytes that a character is mapped to; an Arabic ligature becomes 33."""


def check_charsmap(data: bytes) -> None:
    """Check a table.

    Raises:
        ValueError: It leads behind its end, or makes a text grow.
    """
    from hashlib import sha256  # takes as long as all else that a first screen reads of texts

    if sha256(data).hexdigest() in PUBLISHED:
        return
    size = int.from_bytes(data[:4], "little")
    if size % 4 or not 4 <= size <= len(data) - 4:
        raise ValueError("its table of characters is cut")
    units, texts = np.frombuffer(data, "<u4", size // 4, 4), data[4 + size :]
    if max(map(len, texts.split(b"\0"))) > LONGEST:
        raise ValueError(f"its table makes a character longer than {LONGEST} bytes")
    if any(start >= len(texts) or texts[start] & 0xC0 == 0x80 for start in _starts(units).tolist()):
        raise ValueError("its table of characters leads into no text")


def _starts(units: Host) -> Host:
    """Where the texts begin that the trie leads to; a node is named by the number whose bits labels are put into."""
    count = np.uint32(len(units))
    places, labels = np.arange(count, dtype=np.uint32), units & 0x800000FF
    before = np.where((labels > 0) & (labels < 256), places ^ labels, count)
    after = places ^ ((units >> 10) << ((units & 0x200) >> 6))
    reached = np.zeros(len(units) + 1, np.bool_)
    nodes, found = after[:1], []
    while len(nodes):
        if (nodes | 0xFF).max() >= count:
            raise ValueError("its table of characters leads behind its end")
        reached[nodes] = True
        there = reached[np.minimum(before, count)]
        before[there] = count  # each once
        ends = after[there & ((units >> 8) & 1 == 1)]
        nodes = after[there]
        if (ends >= count).any():
            raise ValueError("its table of characters leads behind its end")
        found.append(units[ends] & 0x7FFFFFFF)
    return np.concatenate([np.zeros(0, np.uint32), *found])
