"""`features`: which features of a dictionary are active at every token, and what each of them writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_transformer.cli.options import Edited, TableFormat
from tui_transformer.cli.output import Row, Table, Value, note
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.cli.session import open_session
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.analysis.features import ActiveFeatures
    from tui_transformer.engine.backend import Host
    from tui_transformer.model import Model
    from tui_transformer.session.session import Session


Ends = tuple[str | None, str | None]
"""The words that are raised, and those that are lowered."""


@dataclass(frozen=True, kw_only=True)
class Features(Edited):
    """List the strongest features of every token: how strong each is, what it leaves, and which words it raises.

    FILE is a sparse autoencoder or a transcoder of SAELens, Gemma Scope, sparsify or circuit-tracer; by default the
    dictionary that comes with the model, as one does with story, and its labels. The columns:
    active, how many features are not 0; error, what all of them leave of x, or of what a transcoder writes,
    ‖x − reconstruction‖ ÷ ‖x‖; left, the same with this one and those above it alone; raises and lowers, what it adds
    to the logits of its token directly, norms frozen.

    Example: tui-transformer features --model story --text "Once there was a girl"
    """

    file: Path | None = argument(
        "A dictionary of features: its folder or its file of weights.", default=None, metavar="FILE", show_default=False
    )
    at: str | None = option(
        None,
        "The step that it reads; by default that of the hook that the file names. {} is the number of the layer, where "
        "it reads several.",
        metavar="STEP",
    )
    into: str | None = option(
        None, "The step that a transcoder writes; by default the output of the feed-forward layer.", metavar="STEP"
    )
    replace: bool = flag("The reconstruction goes on in the model's place.")
    token: int | None = option(None, "Only this token, from 0.", min=0)
    feature: str | None = option(
        None, "These features at every token, active or not. May be given again.", several=True, metavar="12,340"
    )
    top: int = option(5, "How many features of each token.", min=1)
    words: int = option(3, "How many words of each feature, raised and lowered.", min=0)
    labels: Path | None = option(
        None, "What features are called: CSV or Neuronpedia's JSON, a number and a label each.", metavar="FILE"
    )
    format: TableFormat = "text"

    def run(self) -> None:
        from tui_transformer.analysis.features import places_of_features
        from tui_transformer.features.dictionary import own_dictionary
        from tui_transformer.features.labels import own_labels, read_labels

        labels = {} if self.labels is None else read_labels(self.labels)
        session = open_session(self, made=self._with_features)
        own = own_dictionary(session.model.folder) if self.file is None else None
        labels = labels or own_labels(own)
        with cleared():
            places = places_of_features(session.trace.program)
            rows = [row for at in places for row in self._rows(session, at, labels, several=len(places) > 1)]
        columns = ["position", "token", "active", "error", "rank", "feature", "value", "left"]
        columns[:0] = ["at"] if len(places) > 1 else []
        columns += ["label"] if labels else []
        columns += ["raises", "lowers"] if self.words else []
        where = places[0] if len(places) == 1 else f"{len(places)} steps"
        said = f"{visible(str(self.file or own))} at {where}" + " · the reconstruction goes on" * self.replace
        Table(tuple(columns), rows, 4, said).emit(self.format)

    def _with_features(self, model: Model) -> Model:
        from tui_transformer.features.dictionary import Features as Dictionary

        dictionary = Dictionary.of(model) if self.file is None else Dictionary.load(self.file)
        return model.with_features(dictionary, self.at, into=self.into, replace=self.replace)

    def _rows(self, session: Session, at: str, labels: Mapping[int, str], *, several: bool) -> Iterator[Row]:
        """A line a feature of every token."""
        from tui_transformer.analysis.attentions import prepared
        from tui_transformer.analysis.features import active_features

        trace, numbers = session.trace, () if self.feature is None else parse_ids(self.feature, "--feature")
        prepared(trace, f"{at}.error", show)
        tokens = None if self.token is None else range(self.token, self.token + 1)
        found = []
        for each in active_features(trace, at, self.top, features=numbers, tokens=tokens):
            show(f"features · token {each.token + 1:,}")
            found.append(each)
        label = session.labels.of(trace.program.axes(f"{at}.features")[0])
        spelled = self._words(session, found)
        for each, words in zip(found, spelled, strict=True):
            front = (*((at,) if several else ()), each.token, label(each.token), each.active, each.error)
            for place, feature in enumerate(each.features):
                cells: list[Value] = [*front, feature.rank or None, feature.feature, feature.value, feature.left]
                cells += [labels.get(feature.feature)] if labels else []
                yield *cells, *(words[place] if self.words else ())
            if not each.features:
                yield *front, *(None,) * (4 + bool(labels) + 2 * bool(self.words))

    def _words(self, session: Session, found: Sequence[ActiveFeatures]) -> list[list[Ends]]:
        """The words that every feature raises and lowers; none where what it writes goes to no logits."""
        from tui_transformer.analysis.features import feature_words

        none: list[list[Ends]] = [[(None, None)] * len(each.features) for each in found]
        if not self.words or not any(each.features for each in found):
            return none
        try:
            logits = list(feature_words(session.trace, found, report=show))
        except InputError as error:
            note(f"no words: {error}")
            return none
        return [
            [
                self._ends(session, row) if one.value else (None, None)
                for one, row in zip(each.features, rows, strict=True)
            ]
            for each, rows in zip(found, logits, strict=True)
        ]

    def _ends(self, session: Session, logits: Host) -> Ends:
        order = logits.argsort(kind="stable").tolist()
        ends = order[::-1][: self.words], order[: self.words]
        raised, lowered = (
            ", ".join(f"{session.labels.word(word)} {logits[word]:+.2f}" for word in words) for words in ends
        )
        return raised, lowered
