"""Byte-level byte-pair encoding, learned by the library `tokenizers`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_transformer.text.specials import Specials
from tui_transformer.text.tokenizer_file import PieceVocabulary, built_vocabulary

LONGEST_WORD = 1000
"""Characters without a space, or spaces, that are looked at together: learning from a word takes its length squared."""

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
    rust.train_from_iterator((part for line in lines for part in _parts(line)), trainer)
    return built_vocabulary(rust, "built", specials)


def _parts(line: str) -> Iterator[str]:
    """The line, cut inside the words that are too long."""
    start = 0
    if len(line) > LONGEST_WORD:
        for found in _LONG.finditer(line):
            yield line[start : found.end()]
            start = found.end()
    yield line[start:]
