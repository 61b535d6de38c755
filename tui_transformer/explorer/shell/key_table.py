"""The keys of the main screen as a table in Markdown, which the README has, made from the keys of the meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_transformer.explorer.shell.keys import KEYS, spelled

ROWS = (
    (
        "{step.next} {step.back}, {sublayer.next} {sublayer.back}, {layer.back} {layer.next}",
        "next step and back, by sublayer, by layer",
    ),
    (
        "arrows or {cursor.left 1} {cursor.down 1} {cursor.up 1} {cursor.right 1}, {head.back} {head.next}",
        "move the cell, change the head",
    ),
    ("{cursor.choose}", "look inside: the operation drawn with its operands; {cursor.choose} on a line follows it"),
    ("{sentence.edit} {vocabulary.open} {settings}", "the sentence, the vocabulary, the settings"),
    ("{cell.edit} {undo}", "set, add to or scale a cell or a whole step; take a change back"),
    (
        "{backward} {compare} {overlay}",
        "backward: gradients beside the values; compare two traces; what is shown of both",
    ),
    ("{heads.all} {links} {rollout} {lens}", "all heads at once, strongest links, attention rollout, logit lens"),
    ("{ablate.head} {ablate} {patch}", "ablate this head, everything in turn; patch from another sentence"),
    (
        "{generate} {train} {checkpoints} {exercises}",
        "write on, with the KV cache; train; step through a run's checkpoints; exercises",
    ),
    ("{weights} {chart.next} {export}", "the step's weight, the next chart, export"),
    (
        "{whole} {zoom} {go} {open}",
        "the whole at any size; this pane alone; go to a step; another model, tour or sentence",
    ),
    (
        "{predict} {breaks} {arcs} {similar}",
        "predict before the values are shown; break one thing and see what it changes; arcs between words; "
        "compare sentences",
    ),
    (
        "{measure} {patching} {inputs} {terms} {circuits}",
        "what ablations and patches are measured by; tables of patches; what every token adds, what every head and "
        "layer writes toward a word; circuits of weights",
    ),
    (
        "{nearest} {score} {softmax}",
        "words nearest to a word or to a sum of words; how likely the text is; the softmax, naive and safe",
    ),
    ("{tour} {help} `ctrl+p` {quit}", "guided tour, help, every action, quit"),
)
"""Meanings, which of its keys where that is not the first, and what the keys do."""


def key_table() -> Iterator[str]:
    """The lines of the table."""
    yield "| keys | |"
    yield "|---|---|"
    for keys, says in ROWS:
        yield f"| {_filled(keys)} | {_filled(says)} |"


def _filled(text: str) -> str:
    return re.sub(r"\{([\w.-]+)(?: (\d))?\}", lambda match: f"`{_key(match[1], int(match[2] or 0))}`", text)


def _key(meaning: str, number: int) -> str:
    return spelled(KEYS[meaning].split(",")[number])
