"""The tokens of one side of a program, and its inputs from outside."""

from __future__ import annotations

from typing import NamedTuple

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Given
from tui_transformer.engine.program import Builder
from tui_transformer.records import dataclass

NEW = "new "
"""In front of the name of a sequence of which only the last tokens are computed."""


class Lengths(NamedTuple):
    """How many tokens a program is built for.

    Attributes:
        tokens: Of the sentence.
        decoder: Of a decoder beside an encoder; 0 where there is one sequence only.
        past: Tokens before these (of the decoder, where there are two sequences) whose keys and values were kept.
        counted: Tokens of a decoder's longest sentence that are no padding, where frequencies go by them; 0 for all.
    """

    tokens: int
    decoder: int = 0
    past: int = 0
    counted: int = 0

    def after(self, past: int) -> Lengths:
        """The same without the first `past` tokens of the sequence that grows, whose keys and values are there."""
        if self.decoder:
            return Lengths(self.tokens, self.decoder - past, past)
        return Lengths(self.tokens - past, 0, past, self.counted)


@dataclass(frozen=True)
class Sequence:
    """The tokens of one side: the names of its inputs.

    Attributes:
        tokens: IDs; "" where only keys and values of them are left.
        visible: Which keys are real tokens.
        keys: Places of everything that can be looked at: of the tokens before as well.
        kept: Axis of the tokens before, whose keys and values were kept; None where all are computed.
        counted: As in `Lengths`.
    """

    tokens: str
    places: str
    visible: str
    keys: str
    kept: Axis | None = None
    counted: int = 0

    def other_input(self, build: Builder, last: str) -> str:
        """Another input of the tokens."""
        return build.given(f"{self.places.rpartition('.')[0]}.{last}", *build.known[self.places])


def sequence(
    build: Builder, label: str, length: int, past: int = 0, counted: int = 0, *, computed: bool = True
) -> Sequence:
    """The inputs of a token sequence: IDs, places 0, 1, 2 … and which are real tokens (not padding).

    Keys and values of the first `past` tokens were kept: only the `length` tokens after them are computed; none where
    another sequence looks at them alone.
    """

    def given(name: str, axis: Axis) -> str:
        return build.given(build.full(f"input.{name}"), axis)

    axis, every = Axis("token", length, f"{NEW}{label}" if past else label), Axis("token", past + length, label)
    tokens = build("tokens", Given(), given("ids", axis)) if computed else ""
    places, visible = given("places", axis), given("visible", every)
    if not past:
        return Sequence(tokens, places, visible, places, counted=counted)
    return Sequence(tokens, places, visible, given("key_places", every), Axis("token", past, label), counted)
