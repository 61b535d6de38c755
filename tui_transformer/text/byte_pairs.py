"""Byte-level byte-pair encoding, learned by the library `tokenizers`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from itertools import takewhile

from tui_transformer.text.specials import Specials
from tui_transformer.text.tokenizer_file import PieceVocabulary, built_vocabulary

LONGEST_WORD = 1000
"""Characters without a space, or spaces, that are looked at together: learning from a word takes its length squared."""

WAIT = 0.1
"""Seconds between two looks whether the work is done."""

_LONG = re.compile(rf"\S{{{LONGEST_WORD}}}|\s{{{LONGEST_WORD}}}")


def learn(lines: Iterator[str], size: int, min_frequency: int, specials: Specials) -> PieceVocabulary:
    """Merge the most frequent pair until there are so many entries (Sennrich et al. 2016, algorithm 1).

    Every byte is an entry, so every text can be written.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    rust = Tokenizer(models.BPE(unk_token=specials.unknown))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(specials.names),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    parts = (part for line in lines for part in _parts(line))
    interruptible(lambda wanted: rust.train_from_iterator(takewhile(wanted, parts), trainer))
    return built_vocabulary(rust, "built", specials)


def _parts(line: str) -> Iterator[str]:
    """The line, cut inside the words that are too long."""
    start = 0
    if len(line) > LONGEST_WORD:
        for match in _LONG.finditer(line):
            yield line[start : match.end()]
            start = match.end()
    yield line[start:]


def interruptible(work: Callable[[Callable[[object], bool]], None]) -> None:
    """Do work on another thread: the library hears no signals, this thread does.

    Args:
        work: Given a function that says whether more of its input is wanted.
    """
    ended, failed = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            work(lambda _: not ended.is_set())
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(WAIT)
    finally:
        ended.set()
        thread.join(WAIT)
    if failed:
        raise failed[0]
