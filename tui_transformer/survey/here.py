"""A survey in this process, a batch after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tui_transformer.survey.work import Batch, Work


def here(work: Work, batches: Iterable[Batch]) -> Iterator[bytes]:
    """The sums of each batch, in order.

    Where BLAS has several threads, the last bits may differ from those of workers, which have one.
    """
    return map(work.sums, batches)
