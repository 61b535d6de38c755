"""Byte-level byte-pair encoding, learned by the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.text.specials import Specials
from tui_transformer.text.tokenizer_file import PieceVocabulary, built_vocabulary


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
    rust.train_from_iterator(lines, trainer)
    return built_vocabulary(rust, "built", specials)
