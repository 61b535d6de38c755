"""Tokenizers in several files: `vocab.json` and `merges.txt`, or `vocab.txt` with the tokens that were added to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError
from tui_transformer.text.display import visible
from tui_transformer.text.files import read_text, shown_path
from tui_transformer.text.json_files import ADDED, Added, Special, read_ids, sibling_options, sibling_tokens
from tui_transformer.text.tokenizer_file import PieceVocabulary, refused, vocabulary_of
from tui_transformer.text.vocabulary import Vocabulary, has_capitals

if TYPE_CHECKING:
    import tokenizers

FRAMES: Mapping[str, tuple[str, ...]] = {
    "GPT2Tokenizer": (),
    "RobertaTokenizer": ("<s>", "</s>"),
    "BartTokenizer": ("<s>", "</s>"),
}
"""The tokens around a text, for each `tokenizer_class` that is whole in `vocab.json` and `merges.txt`."""

_SPECIAL_PIECES = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>")
_ENDS = ("cls_token", "sep_token")
"""Who stands before and after a text."""


def byte_pairs(path: Path, merges: Path) -> PieceVocabulary:
    """Byte-level BPE (Radford et al. 2019) from a table of IDs and a list of merges.

    Raises:
        InputError: A file is missing or broken, or they do not fit each other.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    ids, pairs, options, added = read_ids(path), _pairs(merges), sibling_options(path), sibling_tokens(path)
    unknown = added.named("unk_token", "<unk>")
    with refused(f"{shown_path(path)} and {merges.name} do not fit each other"):
        rust = Tokenizer(models.BPE(vocab=ids, merges=pairs, unk_token=unknown if unknown in ids else None))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=options.get("add_prefix_space") is True)
    rust.decoder = decoders.ByteLevel()
    usual = [Special(word, {"lstrip": word == "<mask>"}) for word in _SPECIAL_PIECES if word in ids]
    _add(rust, path, added, usual)
    _add_frame(rust, _frame(rust, options, added, path))
    return vocabulary_of(rust, path, rust.token_to_id(unknown))


def word_pieces(path: Path, words: Vocabulary) -> PieceVocabulary:
    """BERT's word pieces with the tokens that the files beside its `vocab.txt` add.

    Raises:
        InputError: The files are broken, or an added token has an ID that leaves a gap.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    added, options = sibling_tokens(path), sibling_options(path)
    unknown = added.named("unk_token", "[UNK]")
    if unknown not in words.ids:
        raise InputError(
            f"{shown_path(path)} has no {visible(unknown[:60])}, which stands for what is unknown: add a line with it"
        )
    rust = Tokenizer(models.WordPiece(vocab=words.ids, unk_token=unknown))
    lower = options.get("do_lower_case", not has_capitals(words)) is True
    rust.normalizer = normalizers.BertNormalizer(lowercase=lower)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    _add(rust, path, added, [Special(word) for word in words.special_words])
    frame = tuple(added.named(role, word) for role, word in zip(_ENDS, ("[CLS]", "[SEP]"), strict=True))
    _add_frame(rust, frame if all(rust.token_to_id(word) is not None for word in frame) else ())
    return vocabulary_of(rust, path, words.ids[unknown])


def _add(rust: tokenizers.Tokenizer, path: Path, added: Added, usual: list[Special]) -> None:
    """The tokens that were added, each with the ID that the file gives it, and which of those there are are special."""
    from tokenizers import AddedToken

    special = {each.content: each for each in (*usual, *added.special)}
    for word, token_id in sorted(added.ids.items(), key=lambda item: item[1]):
        if word not in special:
            rust.add_tokens([AddedToken(word)])
        else:
            rust.add_special_tokens([AddedToken(word, **special[word].flags)])
        if rust.token_to_id(word) != token_id:
            where = shown_path(path.with_name(ADDED))
            raise InputError(
                f"{where} gives {word[:60]!r} the ID {token_id}, which is not the next: give a tokenizer.json"
            )
    there = [each for each in special.values() if rust.token_to_id(each.content) is not None]
    rust.add_special_tokens([AddedToken(each.content, **each.flags) for each in there])


def _add_frame(rust: tokenizers.Tokenizer, frame: tuple[str, ...]) -> None:
    from tokenizers import processors

    if frame:
        first, last = frame
        places = [(word, rust.token_to_id(word)) for word in frame]
        rust.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}", pair=f"{first} $A {last} $B:1 {last}:1", special_tokens=places
        )


def _frame(rust: tokenizers.Tokenizer, options: Mapping[str, Any], added: Added, path: Path) -> tuple[str, ...]:
    """The tokens around a text: as the named class has them, or those of RoBERTa where the vocabulary has both."""
    kind = options.get("tokenizer_class")
    usual = FRAMES.get("RobertaTokenizer" if kind is None else str(kind).removesuffix("Fast"))
    frame = usual and tuple(added.named(role, word) for role, word in zip(_ENDS, usual, strict=True))
    there = frame is not None and all(rust.token_to_id(word) is not None for word in frame)
    if kind is None:
        return frame if frame and there else ()
    if frame is None or not there:
        raise InputError(
            f"{shown_path(path)} is not the whole of a {visible(str(kind)[:60])}: a tokenizer.json is needed"
        )
    return frame


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in read_text(path).split("\n") if line.strip() and not line.startswith("#version")]
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines]
    wrong = next((line for line, pair in zip(lines, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise InputError(f"{shown_path(path)} has the line {wrong[:40]!r}: a merge is two pieces with a space between")
    return [(first, second) for first, second in pairs]
