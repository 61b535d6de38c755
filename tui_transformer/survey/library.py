"""A survey from Python: texts in, rows and examples out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tui_transformer.analysis.survey.batch import LENGTH, TOP, Asked, Item, check_asked, survey
from tui_transformer.analysis.survey.measures import USUAL, chosen
from tui_transformer.analysis.survey.sums import Source, Sums
from tui_transformer.analysis.survey.table import Origin, examples, rows
from tui_transformer.errors import UsageError
from tui_transformer.model import Model
from tui_transformer.survey.results import Results
from tui_transformer.survey.work import batches
from tui_transformer.text.display import visible


def measure_texts(
    model: Model,
    texts: Iterable[str],
    measures: Sequence[str] = USUAL,
    *,
    layers: Collection[int] | None = None,
    top: int = TOP,
    length: int = LENGTH,
    metric: str | None = None,
    tokens: Sequence[int] = (),
) -> Results:
    """Measures over texts, in this process: a row for every layer, head and measure, and the strongest examples.

    Args:
        model: The model.
        texts: Read one after the other; any number of them.
        measures: Names, as `--measure` of `tui-transformer survey` takes them.
        layers: The layers that are looked at; None for all.
        top: How many examples are kept of every head.
        length: Longer texts are cut to so many tokens.
        metric: By which ablations are measured; the loss without a token is on the tokens of every text.
        tokens: Token IDs that the metric is about.

    Raises:
        InputError: There is no such measure or layer, or the model lacks what is measured.
    """
    for listed, what in ((texts, "texts"), (measures, "measures")):
        if isinstance(listed, str):
            raise UsageError(f"{what} are a list: [{visible(listed[:40])!r}]")
    by = None if metric is None else (metric, tuple(tokens))
    asked = Asked(chosen(measures), None if layers is None else frozenset(layers), top, length, metric=by)
    check_asked(model, asked)
    sums = Sums.nothing(top)
    items = (Item(number, Source("", number + 1, text)) for number, text in enumerate(texts))
    for batch in batches(items):
        sums += survey(model, batch, asked)
    of = Origin(model.name, seed=model.seed, dtype=model.backend.dtype.name)
    return Results(tuple(rows(sums, of)), tuple(examples(sums, of)))
