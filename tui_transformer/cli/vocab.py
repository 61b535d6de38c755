"""`vocab`: the built-in vocabularies, a look into a vocabulary, how it splits a text, and one built from files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from tui_transformer.cli.options import parse_ids, vocabularies
from tui_transformer.cli.output import emit, emit_json, note
from tui_transformer.cli.terminal import Line, cleared, show
from tui_transformer.cli.typer_layer import Option, argument, flag, option, required
from tui_transformer.errors import InputError, UsageError
from tui_transformer.machine import readable
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, fit, visible

if TYPE_CHECKING:
    from tui_transformer.text.build import Built
    from tui_transformer.text.encoding import Token, Tokenizer
    from tui_transformer.text.vocabulary import Vocabulary
    from tui_transformer.text.vocabulary_rules import Specials

Named = Annotated[str, Option("A vocabulary.", metavar="FILE|NAME", autocompletion=vocabularies)]

KINDS = {
    "words": "whole words",
    "characters": "single characters",
    "wordpiece": "word pieces",
    "pieces": "pieces of a tokenizer",
    "sentencepiece": "pieces of a SentencePiece model",
}
SPLIT_SAID = {
    "words": "runs of letters and digits, which an apostrophe may join",
    "runs": "runs of letters and digits",
    "spaces": "whatever stands between white space",
}
CASE_SAID = {"lower": "small letters", "kept": "as written"}
NAMED = 8
"""Entries that no text can give which are named."""
FIRST = 8
"""Of the most frequent entries in the summary."""


@dataclass(frozen=True, kw_only=True)
class List:
    """List the vocabularies that come with the program.

    Example: tui-transformer vocab list
    """

    def run(self) -> None:
        from tui_transformer.text.vocabulary import built_in_vocabularies

        vocabularies = [_load(name) for name in built_in_vocabularies()]
        width = max(len(words.name) for words in vocabularies)
        for words in vocabularies:
            first = " ".join(map(words.label, words.words[:6])) + " …" * (words.size > 6)
            emit([f"{words.name:<{width}}  {words.size:>7,} words  {first}\n"])


@dataclass(frozen=True, kw_only=True)
class Check:
    """Say what a vocabulary file holds: its kind, words, special words, and words that come twice or never.

    Example: tui-transformer vocab check words.txt
    """

    name: str = argument(None, metavar="FILE")

    def run(self) -> None:
        words = _load(self.name)
        rows = {
            "vocabulary": visible(words.name),
            "kind": KINDS[words.kind],
            "entries": f"{words.size:,}",
            "repeated": f"{words.repeated:,}" + (" (ignored)" if words.repeated else ""),
            "special": " ".join(words.words[token] for token in sorted(words.special_ids)),
            "padding": "none" if words.pad_id is None else f"{words.words[words.pad_id]} {words.pad_id}",
            "longest": words.label(max(words.words, key=len)),
        }
        if words.kind == "words":  # the rule for words, and the entries that it leaves out
            from tui_transformer.text.word_tokenizers import unreachable

            never = [visible(word) for word in unreachable(words)]
            named = ", ".join(never[:NAMED]) + ", …" * (len(never) > NAMED)
            rows |= {
                "split": SPLIT_SAID[words.rule.split],
                "case": CASE_SAID[words.rule.case],
                "never": "0" if not never else f"{len(never):,} that no text can give: {named}",
            }
        emit(f"{name:<10}  {text}\n" for name, text in rows.items())


@dataclass(frozen=True, kw_only=True)
class Show:
    """Show words with their IDs, and what pieces stand for.

    Example: tui-transformer vocab show english --from 100 --count 10
    """

    name: str = argument(None, metavar="NAME", autocompletion=vocabularies)
    first: int = option(0, "The first ID.", "--from", min=0)
    count: int = option(50, "How many words.", min=1)

    def run(self) -> None:
        words, end = _load(self.name), self.first + self.count
        if self.first >= words.size:
            raise InputError(f"{visible(words.name)} has no ID {self.first}: its IDs are 0 to {words.size - 1}")
        emit(_words(words, range(self.first, min(end, words.size))))
        if end < words.size:
            note(f"{words.size - end:,} more: --from {end}")


@dataclass(frozen=True, kw_only=True)
class Search:
    """Find the words that contain a text.

    Example: tui-transformer vocab search wav --vocab english
    """

    query: str = argument(None, metavar="TEXT")
    vocab: Named = "waves"
    count: int = option(50, "At most so many words.", min=1)

    def run(self) -> None:
        words = _load(self.vocab)
        hits = words.search(self.query)
        if not hits:
            raise InputError(f"no word of {visible(words.name)} contains {self.query[:80]!r}")
        emit(_words(words, hits[: self.count]))
        if len(hits) > self.count:
            note(f"{len(hits) - self.count:,} more: --count {len(hits)}")


def _words(words: Vocabulary, ids: Iterable[int]) -> Iterator[str]:
    """A line a word: its ID, the word, and what it stands for where that is something else."""
    rows = [(token, words.label(words.words[token]), words.reading(token)) for token in ids]
    width, wide = len(str(words.size - 1)), max(cells(word) for _, word, _ in rows)
    for token, word, reading in rows:
        explained = "" if reading in (word, words.words[token]) else visible(reading)
        yield f"{token:>{width}}  {fit(word, wide)}  {explained}".rstrip() + "\n"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Split a text into tokens: IDs, words, places, and the text that the IDs stand for.

    Example: tui-transformer vocab tokens "The waves crashed" --vocab waves
    """

    text: str = argument(None, metavar="TEXT")
    vocab: Named = "waves"
    form: Literal["text", "json"] = option("text", "json: ID, token, start and end in characters.", "--format")
    special: bool = flag("With what the tokenizer adds before and after a text.", default=True)

    def run(self) -> None:
        tokenizer = _tokenizer(self.vocab)
        tokens = tokenizer.encode(self.text).tokens
        encoded = [each for each in tokens if self.special or not (each.special and each.start == each.end)]
        if self.form == "json":
            names = tokenizer.vocabulary.word
            rows = [{"id": each.id, "token": names(each.id), "start": each.start, "end": each.end} for each in encoded]
            emit_json({"tokens": rows}, None)
            return
        if not encoded:
            raise InputError("the text has no tokens: write at least one word")
        label = tokenizer.vocabulary.label
        labels = [visible(token.text) if token.unknown else label(token.text) for token in encoded]
        width = max(5, *map(cells, labels))
        lines = [f"{'id':>7}  {fit('token', width)}  place\n"]
        for token, shown in zip(encoded, labels, strict=True):
            mark = "unknown" if token.unknown else "special" if token.special else ""
            place = f"{token.start}–{token.end}"
            lines.append(f"{token.id:>7}  {fit(shown, width)}  {place:<9}  {mark}".rstrip() + "\n")
        emit(lines)
        emit([f"\n{visible(tokenizer.decode([each.id for each in encoded]))}\n"])


@dataclass(frozen=True, kw_only=True)
class Decode:
    """Show the text that token IDs stand for: up to the end word, without the begin word and without padding.

    Example: tui-transformer vocab decode 1,2,3 --vocab waves
    """

    ids: str = argument(None, metavar="4,5,6")
    vocab: Named = "waves"
    around: bool = flag("With begin, end and padding, and what comes after the end.")

    def run(self) -> None:
        from tui_transformer.text.encoding import decoded

        tokenizer, tokens = _tokenizer(self.vocab), parse_ids(self.ids, "IDs")
        emit([f"{visible(tokenizer.decode(tokens) if self.around else decoded(tokenizer, tokens))}\n"])


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Cut a text and explain each piece: its ID, what it stands for, and the characters that it covers.

    Example: tui-transformer vocab cut "The waves crashed" --vocab english
    """

    text: str = argument(None, metavar="TEXT")
    vocab: Named = "waves"

    def run(self) -> None:
        from tui_transformer.report.numbers import aligned

        tokenizer = _tokenizer(self.vocab)
        rows = [_explained(tokenizer.vocabulary, self.text, token) for token in tokenizer.encode(self.text).tokens]
        if not rows:
            raise InputError("the text has no tokens: write at least one word")
        emit(aligned([("id", "piece", "stands for", "covers", "place"), *rows]))


def _explained(words: Vocabulary, text: str, token: Token) -> tuple[str, ...]:
    reading, covered = words.reading(token.id), text[token.start : token.end]
    meaning = "special" if token.special else f"unknown: {token.text}" if token.unknown else reading
    part = "part of " if meaning.startswith("byte") else ""
    place = f"{token.start}–{token.end}" if covered else "added"
    return str(token.id), words.label(words.word(token.id)), meaning, f"{part}“{covered}”" if covered else "", place


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Show how several vocabularies cut a text, side by side.

    Example: tui-transformer vocab compare "The waves crashed" --vocab waves,english
    """

    text: str = argument(None, metavar="TEXT")
    vocab: list[str] = required(
        "A vocabulary, or several as a,b; may be given again.",
        metavar="FILE|NAME",
        autocompletion=vocabularies,
    )

    def run(self) -> None:
        """A column a vocabulary, a row a word of the text: the tokens that it is cut into."""
        from tui_transformer.files import is_file
        from tui_transformer.report.numbers import aligned
        from tui_transformer.text.encoding import cut_by, joined

        names = [name for given in self.vocab for name in ([given] if is_file(Path(given)) else given.split(","))]
        comparison = cut_by(self.text, [_tokenizer(name) for name in names])
        head = ("", *(each.name for each in comparison.cuts))
        unknown = (f", {each.unknown} unknown" * bool(each.unknown) for each in comparison.cuts)
        counts = ("", *(f"{each.tokens} tokens{more}" for each, more in zip(comparison.cuts, unknown, strict=True)))
        rows = [(word, *(joined(each.parts[i]) for each in comparison.cuts)) for i, word in enumerate(comparison.rows)]
        emit(aligned([head, counts, *(row for row in rows if any(row))]))


def _load(name: str) -> Vocabulary:
    from tui_transformer.text.dispatch import load_vocabulary

    return load_vocabulary(name)


def _tokenizer(name: str) -> Tokenizer:
    from tui_transformer.text.dispatch import tokenizer_for

    return tokenizer_for(_load(name))


# A vocabulary of texts


@dataclass(frozen=True, kw_only=True)
class Build:
    """Build a vocabulary from text: its most frequent words, its characters, or byte pairs.

    What is equally frequent comes in the order of its first appearance. Counts are exact for texts of any size: beyond
    a million distinct words they go to temporary files. How words are split is written into the file.

    Example: tui-transformer vocab build text.txt --kind bpe --size 400 -o bpe.json
    """

    files: list[Path] = argument("Text files in UTF-8.", metavar="FILE…")
    kind: Literal["word", "character", "bpe"] = option("word", "What the entries are.")
    size: int = option(10_000, "Entries at most, four special words among them.")
    min_frequency: int = option(1, "How often an entry must come.")
    split: Literal["words", "runs", "spaces"] | None = option(
        None,
        "What a word is: a run of letters and digits, which an apostrophe may join (words, the default); "
        "runs alone; or whatever stands between spaces.",
    )
    case: Literal["lower", "kept"] | None = option(
        None, "Words in small letters (the default), or with the capitals that are written."
    )
    special: str | None = option(
        None,
        "Names of padding, unknown, begin and end, by default [PAD],[UNK],[BOS],[EOS]; may be given again.",
        several=True,
        metavar="NAMES",
    )
    counts: bool = flag("Show ID, count and entry instead of the file.")
    out: Path | None = option(None, "The file to write; .json for bpe.", "--out", "-o", metavar="FILE")

    def run(self) -> None:
        from tui_transformer.files import write_whole
        from tui_transformer.text.build import BUILDERS, build_words
        from tui_transformer.text.vocabulary_rules import WordRule

        specials = self._specials()
        given = {name: value for name in ("split", "case") if (value := getattr(self, name)) is not None}
        if given and self.kind != "word":
            raise UsageError(f"--{next(iter(given))} says what a word is: leave it out with --kind {self.kind}")
        if self.out is not None and (self.kind == "bpe") != (self.out.suffix == ".json"):
            fits = "ends in .json" if self.kind == "bpe" else "does not end in .json"
            raise UsageError(f"{self.out}: the name of a vocabulary of kind {self.kind} {fits}")
        with cleared():
            lines = self._lines()
            if self.kind == "word":
                built = build_words(lines, self.size, self.min_frequency, specials, WordRule(**given))
            else:
                built = BUILDERS[self.kind](lines, self.size, self.min_frequency, specials)
        text = built.vocabulary.file()[1]
        if self.out is not None:
            write_whole(self.out, text.encode())
        if self.counts:
            emit(_counts(built))
        elif self.out is None:
            harmless = (f"{visible(line)}\n" for line in text.removesuffix("\n").split("\n"))
            emit(harmless if sys.stdout.isatty() else [text])
        note(self._summary(built))

    def _specials(self) -> Specials:
        from tui_transformer.text.vocabulary_rules import SPECIALS, Specials

        if self.special is None:
            return SPECIALS
        names = self.special.split(",")
        if len(names) != len(SPECIALS.names):
            raise UsageError(
                f"--special: {self.special[:60]!r} is not four names: padding, unknown, begin and end, "
                "as <p>,<u>,<b>,<e>"
            )
        return Specials(*names)

    def _lines(self) -> Iterator[str]:
        """The lines of the files; how far they are read is said meanwhile."""
        from tui_transformer.files import is_file
        from tui_transformer.text.files import read_lines

        total = sum(path.stat().st_size for path in self.files if is_file(path))
        line, done = Line(notes=False), 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            line.tell(f"read {readable(done)} of {readable(total)}" if total else f"read {readable(done)}")

        yield from read_lines(self.files, tell)
        show("merging the most frequent pairs" if self.kind == "bpe" else "sorting")

    def _summary(self, built: Built) -> str:
        """Words of the text, the share of them that the vocabulary holds, and the most frequent entries."""
        from tui_transformer.engine.number_format import in_percent

        size, words = built.vocabulary.size, built.vocabulary
        entries = f"{size:,} entries from {built.tokens:,} {'words' if self.kind == 'word' else 'characters'}"
        if built.counts is None:
            return f"{entries}: every text can be written with them"
        special = len(words.special_words)
        counts = enumerate(built.counts[special : special + FIRST], special)
        first = ", ".join(f"{words.reading(token)} {count:,}" for token, count in counts)
        return (
            f"{entries}, {built.distinct:,} of them distinct: "
            f"they cover {in_percent(built.coverage)} of the text; most frequent: {first}"
        )


def _counts(built: Built) -> Iterator[str]:
    """A line an entry: ID, how often it came, and the entry; byte pairs have no counts of their own."""
    words = built.vocabulary
    counts = [""] * words.size if built.counts is None else [f"{count:,}" for count in built.counts]
    wide = max(map(len, counts))
    for token_id, (word, count) in enumerate(zip(words.words, counts, strict=True)):
        yield f"{token_id:>{len(str(words.size))}}  {fit(count, wide, 'right')}  {words.label(word)}\n"


@dataclass(frozen=True, kw_only=True)
class Vocab:
    """Look into vocabularies, build them, and split text into tokens."""

    commands: ClassVar[Mapping[str, type]] = {
        "list": List,
        "check": Check,
        "show": Show,
        "search": Search,
        "tokens": Tokens,
        "decode": Decode,
        "cut": Cut,
        "compare": Compare,
        "build": Build,
    }
