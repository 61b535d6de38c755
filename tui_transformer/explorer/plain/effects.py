"""What comes of a change without a screen, in sentences: of what is broken, and of what is added in what is written."""

from __future__ import annotations

from tui_transformer.diagnosis.breaking import BREAKS, Broken, fitting
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.generate.draft import AT_FIRST, Draft
from tui_transformer.explorer.tools.generate.steering import Start, prompt_of
from tui_transformer.generation.text import token_texts
from tui_transformer.records import replace
from tui_transformer.session.break_effect import BreakEffect, effect_of, whole
from tui_transformer.session.break_search import Examples, telling_head, turning
from tui_transformer.session.edit_format import read_number
from tui_transformer.session.edit_values import EXAMPLES
from tui_transformer.session.session import Session
from tui_transformer.session.steering import at_strength, end_of, moved, said, steered, steering, strength_of
from tui_transformer.text.display import visible

MOST_WORDS = 3


def with_break(session: Session, words: str) -> tuple[Session, str]:
    """Something broken, with a number if one is written, or mended; without words everything is mended.

    Raises:
        InputError: There is nothing of the kind, or nothing to mend.
    """
    if not words and not session.breaks:
        raise InputError("write behind it what to break: break no-scale, break no-scale 0.5; breaks lists what can be")
    broken = [Broken.read(each) for each in session.breaks]
    wanted = _read(session, words) if words else None
    same = [each for each in broken if wanted is None or each.kind is wanted.kind]
    others = [str(each) for each in broken if each not in same]
    if wanted is None or (same and wanted.number in (None, same[0].number)):
        mended = " and ".join(each.title for each in same)
        return session.with_breaks(*others), f"mended: {mended}"
    return session.with_breaks(*others, str(wanted)), f"broken: {wanted.title}"


def breaks_told(session: Session, words: str) -> str:
    """What every break makes of the answer, the largest change first; of one that is named, all that is known.

    Raises:
        InputError: There is nothing of the kind.
    """
    session = whole(session)
    if words:
        return _one(session, _read(session, words))
    there = fitting(session.base)
    effects = [effect_of(session, _read(session, each.name), lambda _: None) for each in there]
    effects.sort(key=lambda effect: -effect.size)
    examples = Examples(session)
    change = "; ".join(_named(effect, effect.said) for effect in effects if effect.changes)
    nothing = "; ".join(
        _named(effect, examples.search(effect.made, lambda _: None).said) for effect in effects if not effect.changes
    )
    absent = "; ".join(f"{each.title} ({each.name}): {each.absent}" for each in BREAKS if each not in there)
    parts = {
        "Each broken by itself, what moves the answer most first": change,
        "What changes nothing here": nothing,
        "Not here": absent,
    }
    return ". ".join(f"{title}: {said}" for title, said in parts.items() if said) + "."


def _read(session: Session, words: str) -> Broken:
    made, trace = Broken.read(words), whole(session).base
    if made.kind.name == "head" and not made.place:
        made = replace(made, place=telling_head(whole(session), lambda _: None))
    if not made.steps(trace):
        raise InputError(f"nothing to break: {made.kind.absent}")
    return made


def _named(effect: BreakEffect, said: str) -> str:
    return f"{effect.made.title} ({effect.made.kind.name}): {said}"


def _one(session: Session, made: Broken) -> str:
    effect = effect_of(session, made, lambda _: None)
    row, column = effect.at
    was, becomes = (
        float(view.window(range(row, row + 1), range(column, column + 1))[0, 0])
        for view in (effect.before, effect.after)
    )
    slider = made.slider(session.base)
    likeliest = ", ".join(
        f"{effect.was.guess(word).name} {in_percent(effect.was.guess(word).share, '.2%')}"
        f" → {in_percent(effect.becomes.guess(word).share, '.2%')}"
        for word in effect.likeliest[:MOST_WORDS]
    )
    cell = f"{effect.step}[{', '.join(map(str, effect.cell))}]"
    parts = [
        f"{made.title}: {effect.said}",
        f"of the likeliest words {likeliest}" if likeliest else "",
        f"it acts at {cell}: {spoken(was)} → {spoken(becomes)}",
        "" if slider is None else turning(session, made, slider, lambda _: None).said(made),
        "" if effect.turns else Examples(session).search(replace(made, number=None), lambda _: None).said,
        made.kind.lesson.rstrip("."),
    ]
    return "; ".join(filter(None, parts)) + "."


# What is written, and what is added to a step meanwhile


def written(session: Session, words: str = "") -> str:
    """The text that the model writes, so many tokens; where something is added, the text without it as well.

    What is to be known of it stands behind: what is broken here is not broken there.

    Raises:
        InputError: The model writes nothing, or no number of tokens is named.
    """
    if words and not (words.isdecimal() and int(words[:9]) > 0):
        raise InputError(f"{words[:20]!r} is no number of tokens: generate 20")
    count, start = int(words[:9]) if words else AT_FIRST, Start.of(session)
    writer, edit = start.writer, steering(session.edits, session.base.program)
    writer.settings = replace(writer.settings, max_new_tokens=count)
    begun = Draft(writer, writer.settings, (writer.begin(prompt_of(writer, session)),))
    if edit is None:
        return "; ".join((f"written: {_text(begun.up_to(count))}", *start.remarks))
    draft = begun.steered(edit, start.beside(edit), count)
    without = "" if draft.without is None else f"without: {_text(draft.without)}; "
    slider = f"its slider goes from {minus(f'{-draft.end:g}')} to {draft.end:g}"
    return "; ".join((f"{without}with {said(edit)}: {_text(draft)}", slider, *start.remarks))


def _text(draft: Draft) -> str:
    return f"“{visible(''.join(token_texts(draft.writer.model, draft.ids)))}”"


def slid(session: Session, words: str, by: int | None) -> Session:
    """Something added so many times, or so many steps of its slider more.

    Raises:
        InputError: Nothing is added, or it is no number.
    """
    strength = read_number(words, session.model.backend.dtype) if by is None else 0.0
    edit = steering(session.edits, session.base.program)
    if edit is None:
        raise InputError(f"nothing is added to a step: {EXAMPLES}")
    if by is not None:
        strength = moved(strength_of(edit), end_of(edit, steered(session, None).trace), by)
    return steered(session, at_strength(edit, strength))
