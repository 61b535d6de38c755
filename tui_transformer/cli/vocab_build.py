"""`vocab build`: a vocabulary made from text files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.output import emit, note
from tui_transformer.cli.terminal import Line, cleared, show
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import UsageError
from tui_transformer.machine import readable
from tui_transformer.records import dataclass
from tui_transformer.text.display import fit, visible

if TYPE_CHECKING:
    from tui_transformer.text.build import Built
    from tui_transformer.text.vocabulary_rules import Specials, WordRule

FIRST = 8
"""Of the most frequent entries in the summary."""


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
        from tui_transformer.text.files import read_lines

        specials, rule = self._specials(), self._rule()
        if self.out is not None and (self.kind == "bpe") != (self.out.suffix == ".json"):
            fits = "ends in .json" if self.kind == "bpe" else "does not end in .json"
            raise UsageError(f"{self.out}: the name of a vocabulary of kind {self.kind} {fits}")
        with cleared():
            lines = self._announced(read_lines(self.files, _progress(self.files)))
            if self.kind == "word":
                built = build_words(lines, self.size, self.min_frequency, specials, rule)
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

    def _rule(self) -> WordRule:
        from tui_transformer.text.vocabulary_rules import WordRule

        given = {name: value for name in ("split", "case") if (value := getattr(self, name)) is not None}
        if given and self.kind != "word":
            raise UsageError(f"--{next(iter(given))} says what a word is: leave it out with --kind {self.kind}")
        return WordRule(**given)

    def _announced(self, lines: Iterator[str]) -> Iterator[str]:
        yield from lines
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


def _progress(files: Sequence[Path]) -> Callable[[int], None]:
    from tui_transformer.files import is_file

    total = sum(path.stat().st_size for path in files if is_file(path))
    line, done = Line(notes=False), 0

    def read(count: int) -> None:
        nonlocal done
        done += count
        line.tell(f"read {readable(done)} of {readable(total)}" if total else f"read {readable(done)}")

    return read


def _counts(built: Built) -> Iterator[str]:
    """A line an entry: ID, how often it came, and the entry; byte pairs have no counts of their own."""
    words = built.vocabulary
    counts = [""] * words.size if built.counts is None else [f"{count:,}" for count in built.counts]
    wide = max(map(len, counts))
    for token_id, (word, count) in enumerate(zip(words.words, counts, strict=True)):
        yield f"{token_id:>{len(str(words.size))}}  {fit(count, wide, 'right')}  {words.label(word)}\n"
