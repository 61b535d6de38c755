"""What is known of every break on a sentence, and what is to be worked out next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from tui_transformer.diagnosis.breaking import BREAKS, Break, Broken, Slider, fitting
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.break_effect import BreakEffect, effect_of, whole
from tui_transformer.session.break_search import Elsewhere, Examples, Turn, heads_of, telling_head, turning
from tui_transformer.session.session import Session

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
    def _sliders(self) -> Mapping[str, Slider | None]:
        return {each.name: Broken(each).slider(self.whole.base) for each in BREAKS if each.name in self.there}

    @cached_property
    def examples(self) -> Examples:
        return Examples(self.whole)

    @cached_property
    def reads_text(self) -> bool:
        """Whether there are other sentences."""
        return bool(self.whole.model.config.vocab_size)

    def slider(self, each: Break) -> Slider | None:
        """The numbers of a break; None where it has none, or is not there."""
        return self._sliders.get(each.name)

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
        first = self.made[selected.name]
        others = [self.made[each.name] for each in BREAKS if each.name in self.there and each is not selected]
        rows = ([first] if selected.name in self.there else []) + others
        jobs = (
            *(
                Job("effect" if made.place or made.kind.name != HEAD else "head", made)
                for made in rows
                if str(made) not in self.effects
            ),
            *(job for job in self._further_of(first) if selected.name in self.there),
            *(
                job
                for made in others
                if (effect := self.effect(made.kind, as_switched=True)) is not None and not effect.changes
                for job in self._further_of(made)
                if job.kind == ELSEWHERE
            ),
        )
        return next((job for job in jobs if job not in self.failed), None)

    def _further_of(self, made: Broken) -> tuple[Job, ...]:
        """What is missing of a break, as it is switched."""
        each, switch = made.kind, replace(made, number=None)
        effect = self.effect(each, as_switched=True)
        missing = {
            "effect": effect is None,
            "turn": self.slider(each) is not None and self.turn(each) is None,
            ELSEWHERE: self.reads_text and not (effect and effect.turns) and self.matters(each) is None,
        }
        return tuple(Job(kind, switch) for kind, is_missing in missing.items() if is_missing)

    def cost(self, job: Job) -> int:
        program = self.whole.trace.program
        return PASSES[job.kind] * sum(map(program.flops, program.steps))

    def work(self, job: Job, task: Task) -> tuple[Job, Found]:
        slider = self.slider(job.made.kind)
        if job.kind == "head":
            return job, telling_head(self.whole, task.report)
        if job.kind == "turn" and slider is not None:
            return job, turning(self.whole, job.made, slider, task.report)
        if job.kind == ELSEWHERE:
            return job, self.examples.search(job.made, task.report)
        return job, effect_of(self.whole, job.made, task.report)

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
