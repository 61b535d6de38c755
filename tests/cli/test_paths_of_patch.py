"""`patch --senders … --receivers …`: a table of paths, patched and estimated, and its heat map."""

from __future__ import annotations

from functools import partial

from command_line import Run

from tui_transformer import Metric, Model, paths

GIVEN = ("patch", "--model", "copy", "--ids", "5,6,7,8,9", "--from-ids", "5,10,7,8,9")


def test_the_table_of_paths_is_that_of_the_analysis(run: Run) -> None:
    model = Model.load("copy")
    trace, other = model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])
    metric = Metric("difference", (11, 12))
    together = ["head:0.self_attention:1", "head:0.self_attention:2"]
    measured = partial(paths, trace, other, ["feed_forward", together], ["value", "logits"], metric)
    patched, estimated = (measured(by=by).rows() for by in ("patching", "gradient"))
    given = ("--senders", f"feed_forward,{'+'.join(together)}", "--receivers", "value,logits", "--tokens", "11,12")
    rows = run(*GIVEN, *given, "--format", "json").json
    for row, true, estimate in zip(rows, patched, estimated, strict=True):
        assert (row["sender"], row["receiver"]) == (true["sender"], true["receiver"])
        assert (row["change"], row["estimate"]) == (true["change"], estimate["change"])
        assert row["share of the way"] == true["share"]
    largest = run(*GIVEN, *given, "--by", "gradient", "--top", "2", "--format", "json").json
    sizes = sorted((abs(row["change"]) for row in estimated), reverse=True)
    assert [abs(row["estimate"]) for row in largest] == sizes[:2]


def test_of_the_divergence_there_is_no_estimate(run: Run) -> None:
    ended = run(*GIVEN, "--senders", "head", "--position", "last")
    assert "estimate  " not in ended.out
    assert "no estimate: it is from the sentence itself" in ended.out + ended.err


def test_the_map_of_paths_names_them_briefly_and_says_what_there_is_not(run: Run) -> None:
    out = run(*GIVEN, "--receivers", "value", "--format", "svg").out
    for label in (">1.3 head<", ">0 feed_forward<", ">embedding<", ">0.2 value<", ">no path<"):
        assert label in out, label
