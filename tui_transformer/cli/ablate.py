"""`ablate`: heads, layers, positions or neurons taken out: what each does to the answer, or what follows from some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tui_transformer.analysis.effects import Effect, answer_positions, effects
from tui_transformer.cli import experiment
from tui_transformer.cli.commands.ablate import Request
from tui_transformer.cli.experiment import Answer, answers, effect_data, has_answers, parse_positions, where
from tui_transformer.cli.metrics import chosen
from tui_transformer.cli.output import emit
from tui_transformer.cli.progress import counted
from tui_transformer.cli.session import open_session, unknown_words
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.targets import Target, every, parse
from tui_transformer.errors import UsageError
from tui_transformer.report.export import csv_text
from tui_transformer.report.numbers import aligned
from tui_transformer.session.edit_format import of_texts
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible


@dataclass(frozen=True)
class Ranking:
    """Targets with their effects, the largest first, and the answers before; the metric in words, "" for none."""

    where: str
    set_to: str
    metric: str
    answers: Sequence[Answer]
    effects: Sequence[tuple[Target, Effect]]


def run(request: Request) -> None:
    """Show a table of effects, or what follows from the named edits.

    Raises:
        InputError: There is no such head, layer, position or neuron.
    """
    if request.what and request.each:
        raise UsageError("give either WHAT or --each: one experiment, or a table of all")
    targets = [parse(text) for text in request.what or ()]
    session = open_session(request)
    positions = parse_positions(request.position, session.trace)
    if not targets:
        emit(_FORMATS[request.format](_ranking(session, request, positions)))
        return
    program, means = session.trace.program, _means(session, request, targets)
    edits = [edit for target in targets for edit in target.edits(program, mean=request.mean, means=means)]
    what = [f"{target} set to {_set_to(request)}" for target in targets]
    metric = chosen(session, request)
    emit(experiment.FORMATS[request.format](experiment.run(session, what, edits, positions, metric)))


def _set_to(request: Request) -> str:
    if request.mean_of is not None:
        return f"its mean over {visible(str(request.mean_of))}"
    return "its mean over the positions" if request.mean else "0"


def _means(session: Session, request: Request, targets: Sequence[Target]) -> Mapping[str, Host] | None:
    """The means over the lines of the file, where one is named."""
    if request.mean_of is None:
        return None
    if request.mean:
        raise UsageError("give either --mean or --mean-of: over the positions, or over a file")
    program = session.trace.program
    names = dict.fromkeys(name for target in targets for name in target.steps(program))
    with unknown_words(session.model, visible(str(request.mean_of))) as listen:
        return of_texts(session.model, request.mean_of, list(names), listen)


def _ranking(session: Session, request: Request, positions: range | None) -> Ranking:
    trace = session.trace
    targets = every(trace.program, request.each or "head")
    positions = answer_positions(trace, positions, folder=session.model.folder)
    metric = chosen(session, request)
    way = _means(session, request, targets)
    measured = effects(trace, targets, mean=request.mean, means=way, positions=positions, metric=metric)
    ranked = list(counted(measured, targets))
    ranked.sort(key=lambda pair: -pair[1].size)
    before = list(answers(session, trace, positions)) if has_answers(trace) else []
    said = "" if metric is None else metric.said(session.labels.word)
    read = "every position" if metric is not None and metric.targets else where(session, positions)
    return Ranking(read, _set_to(request), said, before, ranked)


def _text(ranking: Ranking) -> Iterator[str]:
    yield from _heading(ranking)
    yield from aligned([_columns(ranking), *(_row(target, effect) for target, effect in ranking.effects)])


def _heading(ranking: Ranking) -> Iterator[str]:
    yield f"each set to {ranking.set_to}, alone; the answer is read at {ranking.where}\n"
    if ranking.metric:
        effect = ranking.effects[0][1]
        yield f"{visible(ranking.metric)} {(effect.value or 0.0) - (effect.change or 0.0):.4g} as it is\n"
    elif len(ranking.answers) == 1:
        best = ranking.answers[0].guesses[0]
        yield f"most likely: {best.word} {in_percent(best.share, '.2%')}\n"
    yield "\n"


def _columns(ranking: Ranking) -> tuple[str, ...]:
    if ranking.metric:
        return "ablated", visible(ranking.metric), "change"
    if not ranking.answers:
        return "ablated", "relative change"
    likely = ranking.answers[0].guesses[0].word if len(ranking.answers) == 1 else "most likely"
    return "ablated", f"change of ln p({likely})", "divergence (nats)"


def _row(target: Target, effect: Effect) -> tuple[str, ...]:
    if effect.relative is not None:
        return str(target), f"{effect.relative:.4g}"
    if effect.value is not None:
        return str(target), f"{effect.value:.4g}", f"{effect.change:+.4g}"
    return str(target), f"{effect.change:+.4g}", f"{effect.divergence:.4g}"


def _json(ranking: Ranking) -> Iterator[str]:
    data = {
        "mean": ranking.set_to != "0",
        "set to": ranking.set_to,
        **({"metric": ranking.metric} if ranking.metric else {}),
        "answers": [{"position": answer.position, "before": answer.data} for answer in ranking.answers],
        "effects": [{"target": str(target), **effect_data(effect)} for target, effect in ranking.effects],
    }
    yield json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _csv(ranking: Ranking) -> Iterator[str]:
    names = tuple(effect_data(ranking.effects[0][1]))
    rows = ((str(target), *(getattr(effect, name) for name in names)) for target, effect in ranking.effects)
    yield csv_text([("target", *names), *rows])


_FORMATS: Mapping[str, Callable[[Ranking], Iterator[str]]] = {"text": _text, "json": _json, "csv": _csv}
