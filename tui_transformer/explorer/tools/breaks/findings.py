"""What is known of every break on a sentence, what is to be worked out next, and how that is written in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from textual.content import Content

from tui_transformer.diagnosis.breaking import BREAKS, Break, Broken, Slider, fitting
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.answer_summary import LEAST, percent
from tui_transformer.session.break_effect import BreakEffect, effect_of, whole
from tui_transformer.session.break_search import Elsewhere, Examples, Turn, heads_of, telling_head, turning
from tui_transformer.session.session import Session
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.views.numbers import share_bar

HEAD = "head"
"""The break that has a place."""

Found = str | BreakEffect | Turn | Elsewhere
"""What a job gives: the head that matters most, an effect, where the answer turns, a sentence."""

ELSEWHERE = "elsewhere"
PASSES: Mapping[str, int] = {"head": 9, "effect": 2, "turn": 60, ELSEWHERE: 60}
"""About how many forward passes each kind of job takes."""


@dataclass(frozen=True)
class Job:
    """A piece of work: of which kind, about which break."""

    kind: str
    made: Broken


@dataclass(eq=False)
class Findings:
    """What is known of the breaks of a session.

    Attributes:
        whole: The session with nothing broken.
        made: Each break as it is looked at: with which number, at which head.
        effects: By the break, with its number.
        turns: By the break, without a number.
        elsewhere: The same, of those that turn nothing.
        failed: What could not be worked out.
    """

    whole: Session
    made: dict[str, Broken]
    effects: dict[str, BreakEffect] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    failed: set[Job] = field(default_factory=set)

    @classmethod
    def begun(cls, session: Session) -> Findings:
        """Nothing is known yet; what is broken has the number that it is broken with."""
        broken = {each.kind.name: each for each in map(Broken.read, session.breaks)}
        return cls(whole(session), {each.name: broken.get(each.name, Broken(each)) for each in BREAKS})

    @cached_property
    def there(self) -> frozenset[str]:
        return frozenset(each.name for each in fitting(self.whole.base))

    @cached_property
    def sliders(self) -> Mapping[str, Slider]:
        """The numbers of the breaks that are there and have any."""
        there = ((name, Broken(each).slider(self.whole.base)) for each in BREAKS if (name := each.name) in self.there)
        return {name: slider for name, slider in there if slider is not None}

    @cached_property
    def examples(self) -> Examples:
        return Examples(self.whole)

    @cached_property
    def reads_text(self) -> bool:
        """Whether there are other sentences."""
        return bool(self.whole.model.config.vocab_size)

    def effect(self, each: Break, *, as_switched: bool = False) -> BreakEffect | None:
        """The effect of a break as it is looked at, or with the number of its switch."""
        made = self.made[each.name]
        return self.effects.get(str(replace(made, number=None) if as_switched else made))

    def turn(self, each: Break) -> Turn | None:
        """The smallest change that turns the answer."""
        return self.turns.get(str(replace(self.made[each.name], number=None)))

    def matters(self, each: Break) -> Elsewhere | None:
        """A sentence on which it matters."""
        return self.elsewhere.get(str(replace(self.made[each.name], number=None)))

    def other_head(self, by: int, layers: int) -> Broken | None:
        """The break of another head of the same attention, or of the same or the last of another; None without any."""
        made = self.made[HEAD]
        if not made.place:
            return None
        heads = Counter(each.place for each in heads_of(self.whole.trace.program))
        attention, _, number = made.place.rpartition(":")
        other = list(heads)[(list(heads).index(attention) + layers) % len(heads)]
        turned = (int(number) + by) % heads[other] if by else min(int(number), heads[other] - 1)
        return replace(made, place=f"{other}:{turned}")

    def leave_out(self, job: Job) -> bool:
        """Go on without what could not be worked out."""
        self.failed.add(job)
        return True

    @property
    def tried(self) -> int:
        return len({effect.made.kind.name for effect in self.effects.values()})

    @property
    def order(self) -> list[int]:
        """What changes the answer, by how far; what is not tried yet, what changes nothing, what is not there."""

        def place(index: int) -> tuple[int, float]:
            each = BREAKS[index]
            effect = self.effect(each, as_switched=True)
            if effect is None:
                return (1 if each.name in self.there else 3), index
            return (0, -effect.size) if effect.changes else (2, index)

        return sorted(range(len(BREAKS)), key=place)

    def said(self, each: Break) -> str:
        """What becomes of the answer; where nothing does, on which sentence something would."""
        effect, elsewhere = self.effect(each), self.matters(each)
        if each.name not in self.there:
            return f"not here: {each.absent}"
        if effect is None:
            return "…"
        return effect.said if effect.changes or elsewhere is None else f"nothing here · {elsewhere.said}"

    # What is to be worked out

    def next_job(self, selected: Break) -> Job | None:
        """The effect of each break, all about the selected, and sentences for those that change nothing here."""
        there = sorted((each for each in BREAKS if each.name in self.there), key=lambda each: each is not selected)
        rows = [self.made[each.name] for each in there]
        alone = ("effect" if made.place or made.kind.name != HEAD else "head" for made in rows)
        jobs = [Job(kind, made) for kind, made in zip(alone, rows, strict=True) if str(made) not in self.effects]
        for made in rows:
            effect = self.effect(made.kind, as_switched=True)
            if made.kind is selected:
                jobs += self._further_of(made)
            elif effect is not None and not effect.changes:
                jobs += (job for job in self._further_of(made) if job.kind == ELSEWHERE)
        return next((job for job in jobs if job not in self.failed), None)

    def _further_of(self, made: Broken) -> tuple[Job, ...]:
        each, switch = made.kind, replace(made, number=None)
        effect = self.effect(each, as_switched=True)
        missing = {
            "effect": effect is None,
            "turn": each.name in self.sliders and self.turn(each) is None,
            ELSEWHERE: self.reads_text and not (effect and effect.turns) and self.matters(each) is None,
        }
        return tuple(Job(kind, switch) for kind, is_missing in missing.items() if is_missing)

    def cost(self, job: Job) -> int:
        program = self.whole.trace.program
        return PASSES[job.kind] * sum(map(program.flops, program.steps))

    def work(self, job: Job, task: Task) -> Found:
        if job.kind == "head":
            return telling_head(self.whole, task.report)
        if job.kind == "turn":
            return turning(self.whole, job.made, self.sliders[job.made.kind.name], task.report)
        if job.kind == ELSEWHERE:
            return self.examples.search(job.made, task.report)
        return effect_of(self.whole, job.made, task.report)

    def take(self, job: Job, found: Found) -> None:
        match found:
            case str():
                self.made[HEAD] = replace(self.made[HEAD], place=found)
            case Turn():
                self.turns[str(job.made)] = found
            case Elsewhere():
                self.elsewhere[str(job.made)] = found
            case BreakEffect():
                self.effects[str(job.made)] = found


# In lines: the slider, both answers, the smallest change, a sentence on which it matters


WORD, NUMBER, BAR, TRACK = 16, 9, 24, 40
"""Columns of a word, of a number with the space before it, of a bar and of a slider at most."""

MOST_WORDS, TABLE = 4, 9
"""Words of both answers, and lines from which they are listed."""

RIGHT, TURNS, HERE = "┼", "╳", "●"
"""Marks of a slider: nothing is broken, the answer turns, the number."""

QUIET = "$foreground 65%"

Part = tuple[int, list[Content]]
"""Lines, and how soon they are left out where there is little room."""


def described(findings: Findings, each: Break, width: int, height: int) -> Content:
    """What is known of a break, as far as there is room for it."""
    parts = [*_parts(findings, each, width, height)]
    kept, room = set[int](), height
    for at in sorted(range(len(parts)), key=lambda place: parts[place][0]):
        if len(parts[at][1]) <= room:
            kept.add(at)
            room -= len(parts[at][1])
    return Content("\n").join(line for at in sorted(kept) for line in parts[at][1])


def _parts(findings: Findings, each: Break, width: int, height: int) -> Iterator[Part]:
    slider, effect = findings.sliders.get(each.name), findings.effect(each)
    turn, elsewhere = findings.turn(each), findings.matters(each)
    yield 4, [Content.styled(fit(each.lesson, width).rstrip(), QUIET)]
    if each.name not in findings.there:
        yield 0, [Content(f"Not here: {visible(each.absent)}.")]
        return
    if slider is not None:
        yield 1, [Content.styled(track(findings.made[each.name], slider, turn, width), "bold")]
    if effect is None:
        yield 0, [Content("…")]
    elif height >= TABLE and effect.likeliest:
        yield 0, [*answer_table(effect, width)]
    else:
        yield 0, [Content.styled(f"the answer: {visible(effect.said)}", "bold")]
    if slider is not None:
        known = "the smallest change that turns the answer: …" if turn is None else turn.said(findings.made[each.name])
        yield 2, [Content(visible(known))]
    if effect is not None and not effect.turns and findings.reads_text:
        known = "a sentence on which it matters: …" if elsewhere is None else elsewhere.said
        yield 3, [Content(visible(known))]


def track(made: Broken, slider: Slider, turn: Turn | None, width: int) -> str:
    """A slider in a line: what its number does, and where it is; as far as there is room, what the marks are."""
    number = slider.usual if made.number is None else made.number
    low, high = (spoken(each, 3) for each in (slider.low, slider.high))
    title = replace(made, number=number).title
    room = max(min(width - cells(title) - len(low) - len(high) - 8, TRACK), 5)
    marks = ["─"] * room
    marks[_place(slider, slider.right, room)] = RIGHT
    if turn is not None and turn.number is not None:
        marks[_place(slider, turn.number, room)] = TURNS
    marks[_place(slider, number, room)] = HERE
    line = f"{title}   {low} {''.join(marks)} {high}"
    signs = f"   {RIGHT} {spoken(slider.right, 3)} is right" + f"   {TURNS} turns" * (TURNS in marks)
    return line + signs if cells(line) + cells(signs) <= width else fit(line, width).rstrip()


def _place(slider: Slider, number: float, room: int) -> int:
    """The column of a number among so many; one beyond the range is at its end, what is none at its beginning."""
    if slider.geometric:
        share = slider.distance(number) / slider.distance(slider.high)  # the right one is the least
    else:
        share = (number - slider.low) / (slider.high - slider.low)
    return round(min(max(0.0, share), 1.0) * (room - 1))


def answer_table(effect: BreakEffect, width: int) -> Iterator[Content]:
    """The likeliest words before and after, with bars to 1 where there is room."""
    bar = max(min((width - WORD) // 2 - NUMBER - 2, BAR), 0)
    side = NUMBER + 2 + bar
    yield Content.styled(f"{fit('the answer', WORD)}{fit('   before', side)}{fit('   after', side)}".rstrip(), QUIET)
    for word in effect.likeliest[:MOST_WORDS]:
        line = fit(effect.was.guess(word).name, WORD)
        for outcome in (effect.was, effect.becomes):
            share = outcome.guess(word).share
            text = in_percent(share, ".2%") if share >= LEAST else percent(share)
            line += f"{text:>{NUMBER}} {share_bar(share, bar)} "
        yield Content(line.rstrip())
