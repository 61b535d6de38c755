"""The texts of the Train screen: title, where the run stands, outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rich.style import Style
from rich.text import Text

from tui_transformer.engine.number_format import in_percent
from tui_transformer.explorer.tools.runs.sample import Output
from tui_transformer.explorer.tools.train.driver import Status
from tui_transformer.explorer.widgets.labels import Inks, spread
from tui_transformer.learning.settings import Settings
from tui_transformer.report.numbers import clock
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import share_bar, short_number

LABEL = 15
BAR = 12


def title(name: str, what: str, status: Status, width: int, inks: Inks) -> Text:
    """The run and its model; at the right what it does."""
    left = Text(" Train  ", inks.accent).append(visible(name), inks.plain + Style(bold=True))
    left.append(f"   {visible(what)}", inks.quiet)
    return spread(left, Text(f"{doing(status)} ", inks.accent), width)


def doing(status: Status) -> str:
    """The state of a run, in a word or two."""
    if status.doing:
        return status.doing
    return {"done": f"all {status.steps:,} steps are made"}.get(status.state, status.state)


def brief(status: Status, width: int) -> str:
    """Where the run stands, in one line, the most important first."""
    parts = [f"step {status.step:,} of {status.steps:,}"]
    if status.record is not None:
        parts += [f"loss {status.record.loss:.4f}", f"accuracy {in_percent(status.record.accuracy)}"]
    parts += [f"rate {status.next_rate:.2g}", *_left(status)]
    return fit(" · ".join(parts), width)


def _left(status: Status) -> list[str]:
    left = clock(status.seconds * (status.steps - status.step))
    return [f"{left} left"] if status.seconds and status.state == "training" else []


def numbers(status: Status, settings: Settings, inks: Inks, width: int) -> Text:
    """Where the run stands, a line a number."""
    lines, room = Text(), max(width - LABEL, 0)
    for label, value in _numbers(status, settings, room).items():
        lines.append(f"{label:<{LABEL}}", inks.quiet).append(f"{fit(value, room)}\n", inks.plain)
    lines.right_crop(1)
    return lines


def _numbers(status: Status, settings: Settings, room: int) -> Mapping[str, str]:
    share = status.step / max(status.steps, 1)
    bar = f"  {share_bar(share, BAR)}▏" if room > 14 + BAR else ""
    return {
        "step": f"{status.step:,} of {status.steps:,}{bar}",
        **_time(status),
        "learning rate": f"{status.next_rate:.3g} · {settings.schedule} from {status.rate:.3g}",
        **_quality(status, settings),
        "checkpoint": "none yet" if status.saved is None else f"step {status.saved:,}",
        **_details(status),
    }


def _time(status: Status) -> Mapping[str, str]:
    left = _left(status)
    return {
        "time left": left[0].removesuffix(" left") if left else "–",
        "speed": f"{short_number(1 / status.seconds)} steps/s" if status.seconds else "–",
    }


def _details(status: Status) -> Mapping[str, str]:
    """Numbers that are left out first where there is little room, by name."""
    record = status.record
    if record is None:
        return {"perplexity": "–", "epoch": "0", "tokens": "–"}
    return {
        "perplexity": short_number(math.exp(min(record.loss, 700.0))),
        "epoch": f"{record.epoch:.2f}",
        "tokens": f"{record.tokens_per_second:,.0f} a second",
    }


def _quality(status: Status, settings: Settings) -> Mapping[str, str]:
    record, validation = status.record, status.measured
    if record is None:
        return {"loss": "–", "accuracy": "–", "last epoch": "–", "validation": "–", "gradient norm": "–"}
    clipped = f", clipped to {settings.clip:g}" if 0 < settings.clip < record.gradient_norm else ""
    held_out = "none yet"
    if validation is not None:
        step, measured = validation
        held_out = f"{measured.loss:.4f} · {in_percent(measured.accuracy)} · step {step:,}"
    return {
        "loss": f"{record.loss:.4f}",
        "accuracy": in_percent(record.accuracy),
        "last epoch": _epoch(status),
        "validation": held_out,
        "gradient norm": f"{short_number(record.gradient_norm)}{clipped}",
    }


def _epoch(status: Status) -> str:
    if status.epoch is None:
        return "none yet"
    return f"{status.epoch.loss:.4f} · {in_percent(status.epoch.accuracy)} · epoch {status.epoch.number:,}"


def outputs(made: Iterable[Output], width: int, lines: int, inks: Inks) -> Text:
    """The model's answers to examples, the newest first, as many as there is room for."""
    text = Text(overflow="fold")
    for output in made:
        entry = _output(output, inks)
        taken = max(-(-entry.cell_len // max(width, 1)), 1)
        if taken > lines:
            break
        lines -= taken
        text.append_text(entry).append("\n")
    text.right_crop(1)
    return text


def _output(output: Output, inks: Inks) -> Text:
    step, given, made = f"{output.step:>6,}  ", visible(output.given), visible(output.made)
    entry = Text(step, inks.quiet)
    if output.right is None:
        return entry.append(f"{given} ", inks.quiet).append(made, inks.plain)
    mark, style = ("right  ", inks.right) if output.right else ("wrong  ", inks.wrong)
    entry.append(mark, style).append(f"{given} → ", inks.quiet).append(made or "nothing", inks.plain)
    return entry if output.right else entry.append(f"   expected {visible(output.expected)}", inks.quiet)
