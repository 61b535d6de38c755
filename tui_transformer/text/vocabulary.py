"""Vocabularies: the words that a model knows, each with its ID.

Three kinds of file are read. A **word list** holds words separated by white space, in order of ID. `[UNK]` is ID 0,
unless the list begins with special words that it is among, and words are kept in the form in which they are looked up
(`normal_form`), except those in [BRACKETS]. A **word-piece file** (BERT's `vocab.txt`, known by its `##` pieces) holds
one piece a line, is kept as written, and the IDs are the line numbers from 0. A file with a **header** says in its
first line what it holds (see `vocabulary_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import ClassVar, Literal

from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import SPACE, Style, piece_label, piece_text, visible
from tui_transformer.text.files import read_text
from tui_transformer.text.vocabulary_rules import (
    MARK,
    PADDING,
    RULE,
    SPECIALS,
    UNKNOWN,
    Header,
    Specials,
    WordRule,
    escaped,
    normal_form,
    read_header,
    unescaped,
)

VOCABULARY_FILE = "vocabulary.txt"
Kind = Literal["words", "characters", "wordpiece", "pieces", "sentencepiece"]
_STYLES: dict[Kind, Style] = {
    "words": "words",
    "characters": "characters",
    "wordpiece": "word pieces",
    "sentencepiece": "marked spaces",
}
SPECIAL_WORDS = (UNKNOWN, PADDING, "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]")
BEGINS, ENDS = "[CLS]", "[SEP]"
MAX_ENTRIES = 2_000_000
MAX_ENTRY_LENGTH = 1_000

_CAPITAL = re.compile("[A-Z]")
_PIECE = re.compile(r"^##\S+[ \t\r]*$", re.MULTILINE)
_PACKAGE = Path(__file__).resolve().parent.parent
# A wheel carries the lists inside the package; a source checkout has them beside it.
FOLDERS = (_PACKAGE / "vocabularies", _PACKAGE.parent / "vocabularies")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of a model in order of ID.

    Attributes:
        name: The built-in name, or the file's name.
        repeated: Number of entries of the file that came again and were ignored.
        kind: Whole words, characters, word pieces, or pieces of a tokenizer's file (`tokenizer_files.PieceVocabulary`).
        path: The file it came from, where there is one.
        specials: Names of padding, unknown, beginning and end; they often have `usual_names` besides.
        rule: What a word is, where the entries are whole words.
    """

    usual_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    name: str
    words: tuple[str, ...] = field(repr=False)
    repeated: int
    kind: Kind
    path: Path | None
    specials: Specials = field(default=SPECIALS, kw_only=True)
    rule: WordRule = field(default=RULE, kw_only=True)

    @property
    def size(self) -> int:
        """Number of words."""
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ID of each word; a piece that is on two lines has the last one, as elsewhere with such files."""
        return {word: token_id for token_id, word in enumerate(self.words)}

    @property
    def unknown_id(self) -> int | None:
        """The ID of the word that stands for every one that is not here."""
        return self.ids[self.specials.unknown]

    @property
    def pad_id(self) -> int | None:
        """The ID of padding, where there is one."""
        return self._special("padding")

    @property
    def begin_id(self) -> int | None:
        """The ID that a sequence begins with, where there is one."""
        return self._special("begin")

    @property
    def end_id(self) -> int | None:
        """The ID that ends a sequence, where there is one."""
        return self._special("end")

    def _special(self, role: str) -> int | None:
        names = (getattr(self.specials, role), *self.usual_names.get(role, ()))
        return next((self.ids[name] for name in names if name in self.ids), None)

    @property
    def around_ids(self) -> tuple[int | None, int | None]:
        """The IDs that begin and end a sentence: the begin and end words, or [CLS] and [SEP] where there are none."""
        begin = self.ids.get(BEGINS) if self.begin_id is None else self.begin_id
        return begin, self.ids.get(ENDS) if self.end_id is None else self.end_id

    @cached_property
    def special_words(self) -> tuple[str, ...]:
        """The special words that occur."""
        return tuple(word for word in dict.fromkeys((*SPECIAL_WORDS, *self.specials.names)) if word in self.ids)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The IDs of the special words that occur, the unknown one among them."""
        return frozenset(self.ids[word] for word in self.special_words)

    @property
    def written(self) -> Vocabulary:
        """The words of what a decoder beside an encoder writes: these, unless it has others."""
        return self

    @property
    def rows(self) -> int:
        """The rows that an embedding table must have."""
        return self.size

    def reading(self, token_id: int) -> str:
        """The meaning of the word of an ID: `##ing` is "ing, inside a word"."""
        return piece_text(self.word(token_id), _STYLES[self.kind])

    def label(self, word: str) -> str:
        """A word as it stands beside a row, with one sign for a space whatever the file's own is."""
        return piece_label(word, _STYLES[self.kind])

    def files(self) -> Mapping[str, bytes]:
        """The names and contents of the files that this can be read from again."""
        name, text = self.file()
        return {name: text.encode()}

    def file(self) -> tuple[str, str]:
        """The one file, where it is one of text; with a header where the list alone does not say what that does."""
        header, lines = Header("words", self.specials, self.rule), self.words
        if self.kind == "characters":
            header, lines = Header("characters", self.specials), tuple(map(escaped, self.words))
        first = [header.line()] if header != Header("words") else []
        return VOCABULARY_FILE, "".join(f"{line}\n" for line in (*first, *lines))

    def word(self, token_id: int) -> str:
        """Give the word of an ID.

        Raises:
            InputError: If there is no such ID.
        """
        if not 0 <= token_id < self.size:
            raise InputError(f"ID {token_id} is not in the vocabulary {visible(self.name)}: use 0 to {self.size - 1}")
        return self.words[token_id]

    def token_id(self, word: str) -> int:
        """Give the ID of a word, with or without the sign for a space before it; " word", or "␣word", has it first.

        Raises:
            InputError: If there is no such word.
        """
        word = word if word in self.ids or not word.startswith(SPACE) else word.replace(SPACE, " ", 1)
        behind = [f"{sign}{word.strip()}" for sign in SPACES]
        for spelled in (*behind, word, word.strip()) if word.startswith(" ") else (word, word.strip(), *behind):
            if spelled in self.ids:
                return self.ids[spelled]
        raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary {visible(self.name)}")

    def search(self, query: str) -> tuple[int, ...]:
        """Give the IDs of the words that contain the query, whatever the case: the word itself, beginnings, the rest.

        An empty query finds everything.
        """
        wanted = normal_form(query.strip().lstrip(SPACE))
        if not wanted:
            return tuple(range(self.size))
        keys = self._search_keys
        matching = [token_id for token_id, key in enumerate(keys) if wanted in key]
        return tuple(sorted(matching, key=lambda i: (keys[i] != wanted, not keys[i].startswith(wanted))))

    @cached_property
    def _search_keys(self) -> list[str]:
        return normal_form("\n".join(word.replace("\n", " ") for word in self.words)).split("\n")


SPACES = ("Ġ", "▁")
"""Signs for a space before a word."""


def by_id(ids: Mapping[str, int], where: str) -> tuple[str, ...]:
    """The words of a table of IDs in their order; "" where an ID has none.

    Raises:
        InputError: There are none, or too many.
    """
    size = max(ids.values(), default=-1) + 1
    if not 0 < size <= MAX_ENTRIES:
        raise InputError(f"{where} has IDs up to {size - 1:,}: a vocabulary has 1 to {MAX_ENTRIES:,} entries")
    words = [""] * size
    for word, token_id in ids.items():
        words[token_id] = word
    return tuple(words)


def has_capitals(words: Vocabulary) -> bool:
    """True if a vocabulary of word pieces tells capitals from small letters."""
    return any(_CAPITAL.search(word) for word in words.words if not word.startswith("["))


def built_in_vocabularies() -> tuple[str, ...]:
    """Give the names of the vocabularies that come with the program, sorted."""
    return tuple(sorted(path.stem for path in _built_in().glob("*.txt")))


def _built_in() -> Path:
    return next((folder for folder in FOLDERS if folder.is_dir()), FOLDERS[0])


def built_in_vocabulary(name: str) -> Vocabulary:
    """The vocabulary of this name that comes with the program."""
    path = _built_in() / f"{name}.txt"
    return parse_vocabulary(read_text(path), name, path)


def parse_vocabulary(text: str, name: str, path: Path | None = None) -> Vocabulary:
    """Make a vocabulary from the text of a word list, of a word-piece file, or of a file with a header.

    Raises:
        InputError: If there are no words, too many, or one too long, if word pieces lack [UNK], or the header is wrong.
    """
    text, where = text.removeprefix("\ufeff"), visible(str(path or name))
    if text.startswith(MARK):
        first, _, rest = text.partition("\n")
        entries = [line.rstrip("\r") for line in rest.rstrip("\r\n").split("\n", MAX_ENTRIES)]
        entries = _checked([line for line in entries if line], where)
        try:
            header = read_header(first)
            read = unescaped if header.kind == "characters" else header.rule.form
            words = dict.fromkeys(line if line in header.specials.names else _kept(line, read) for line in entries)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if header.specials.unknown not in words:
            raise InputError(f"{where} has no {header.specials.unknown}: add a line with it")
        repeated, specials, rule = len(entries) - len(words), header.specials, header.rule
        return Vocabulary(name, tuple(words), repeated, header.kind, path, specials=specials, rule=rule)
    if _PIECE.search(text):
        entries = _checked([line.rstrip() for line in text.rstrip().split("\n", MAX_ENTRIES)], where)
        if UNKNOWN not in entries:
            raise InputError(f"{where} holds word pieces (##) but no [UNK]: add a line [UNK]")
        return Vocabulary(name, tuple(entries), len(entries) - len(set(entries)), "wordpiece", path)
    entries = _checked(text.split(maxsplit=MAX_ENTRIES), where)
    own = UNKNOWN in takewhile(_in_brackets, entries)
    words = dict.fromkeys((*(() if own else (UNKNOWN,)), *map(_kept, entries)))
    repeated = len(entries) + (UNKNOWN not in entries) - len(words)
    return Vocabulary(name, tuple(words), repeated, "words", path)


def _kept(word: str, form: Callable[[str], str] = normal_form) -> str:
    return word if _in_brackets(word) else form(word)


def _in_brackets(word: str) -> bool:
    return len(word) > 1 and word[0] == "[" and word[-1] == "]"


def _checked(entries: list[str], where: str) -> list[str]:
    if not entries:
        raise InputError(f"{where} holds no words: write words separated by white space")
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"{where} holds more than {MAX_ENTRIES:,} entries: choose a shorter list")
    longest = max(map(len, entries))
    if longest > MAX_ENTRY_LENGTH:
        problem = f"holds an entry of {longest:,} characters (the limit is {MAX_ENTRY_LENGTH:,})"
        raise InputError(f"{where} {problem}: separate the words by white space")
    return entries
