"""`vocab build`: a vocabulary made from text files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui_transformer.cli.output import emit, note
from tui_transformer.cli.progress import show
from tui_transformer.cli.vocab_options import BuildRequest
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.parts import readable
from tui_transformer.errors import UsageError
from tui_transformer.files import is_file, write_whole
from tui_transformer.text.build import BUILDERS, Built, build_words
from tui_transformer.text.display import fit, visible
from tui_transformer.text.files import read_lines
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.text.vocabulary_rules import SPECIALS, Specials, WordRule

ENDINGS = {"bpe": ".json"}
WHAT = {"word": "words", "character": "characters", "bpe": "characters"}
OFTEN = 0.1
"""Seconds between two looks at the progress."""

FIRST = 8
"""Of the most frequent entries in the summary."""


def run(request: BuildRequest) -> None:
    """Build it, and write it to a file or to standard output; what it holds is said on standard error."""
    specials, rule = _specials(request.special), _rule(request)
    _check_ending(request)
    lines = _announced(read_lines(request.files, _progress(request.files)), request.kind)
    try:
        built = _build(request, lines, specials, rule)
    finally:
        show(None)
    text = built.vocabulary.file()[1]
    if request.out is not None:
        write_whole(request.out, text.encode())
    if request.counts:
        emit(_counts(built))
    elif request.out is None:
        emit(_harmless(text) if sys.stdout.isatty() else [text])
    note(_summary(built, request))


def _build(request: BuildRequest, lines: Iterator[str], specials: Specials, rule: WordRule) -> Built:
    if request.kind == "word":
        return build_words(lines, request.size, request.min_frequency, specials, rule)
    return BUILDERS[request.kind](lines, request.size, request.min_frequency, specials)


def _rule(request: BuildRequest) -> WordRule:
    """The rule for words, where there are words."""
    given = {name: value for name in ("split", "case") if (value := getattr(request, name)) is not None}
    if given and request.kind != "word":
        raise UsageError(f"--{next(iter(given))} says what a word is: leave it out with --kind {request.kind}")
    return WordRule(**given)


def _harmless(text: str) -> Iterator[str]:
    yield from (f"{visible(line)}\n" for line in text.removesuffix("\n").split("\n"))


def _announced(lines: Iterator[str], kind: str) -> Iterator[str]:
    yield from lines
    show("merging the most frequent pairs" if kind == "bpe" else "sorting")


def _specials(given: str | None) -> Specials:
    if given is None:
        return SPECIALS
    names = given.split(",")
    if len(names) != len(SPECIALS.names):
        raise UsageError(
            f"--special: {given[:60]!r} is not four names: padding, unknown, begin and end, as <p>,<u>,<b>,<e>"
        )
    return Specials(*names)


def _check_ending(request: BuildRequest) -> None:
    """The name of a file says how it is read again."""
    ending = ENDINGS.get(request.kind)
    if request.out is not None and (ending == ".json") != (request.out.suffix == ".json"):
        fits = "ends in .json" if ending else "does not end in .json"
        raise UsageError(f"{request.out}: the name of a vocabulary of kind {request.kind} {fits}")


def _progress(files: Sequence[Path]) -> Callable[[int], None]:
    total = sum(path.stat().st_size for path in files if is_file(path))
    done, shown = 0, time.monotonic()

    def read(count: int) -> None:
        nonlocal done, shown
        done += count
        if time.monotonic() - shown > OFTEN:
            shown = time.monotonic()
            show(f"read {readable(done)} of {readable(total)}" if total else f"read {readable(done)}")

    return read


def _counts(built: Built) -> Iterator[str]:
    """A line an entry: ID, how often it came, and the entry; byte pairs have no counts of their own."""
    words: Vocabulary = built.vocabulary
    counts = built.counts or ("",) * words.size
    wide = max(len(f"{count:,}" if count != "" else "") for count in counts)
    for token_id, (word, count) in enumerate(zip(words.words, counts, strict=True)):
        number = fit(f"{count:,}" if count != "" else "", wide, "right")
        yield f"{token_id:>{len(str(words.size))}}  {number}  {words.label(word)}\n"


def _summary(built: Built, request: BuildRequest) -> str:
    """Words of the text, the share of them that the vocabulary holds, and the most frequent entries."""
    what, size = WHAT[request.kind], built.vocabulary.size
    if built.counts is None:
        return f"{size:,} entries from {built.tokens:,} {what}: every text can be written with them"
    special = len(built.vocabulary.special_words)
    pairs = zip(built.vocabulary.words[special:], built.counts[special:], strict=True)
    first = ", ".join(
        f"{built.vocabulary.reading(special + i)} {n:,}" for i, (_, n) in zip(range(FIRST), pairs, strict=False)
    )
    return (
        f"{size:,} entries from {built.tokens:,} {what}, {built.distinct:,} of them distinct: "
        f"they cover {in_percent(built.coverage)} of the text; most frequent: {first}"
    )
