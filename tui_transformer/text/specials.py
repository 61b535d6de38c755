"""The words of a vocabulary that stand for no text: padding, unknown, beginning and end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from tui_transformer.errors import UsageError
from tui_transformer.text.display import cells

UNKNOWN, PADDING = "[UNK]", "[PAD]"
LONGEST = 100


@dataclass(frozen=True)
class Specials:
    """Names of the special words, in the order in which a vocabulary that is built has them.

    Raises:
        UsageError: Two are the same, or one is not 2 to 100 visible characters without white space.
    """

    padding: str = PADDING
    unknown: str = UNKNOWN
    begin: str = "[BOS]"
    end: str = "[EOS]"

    def __post_init__(self) -> None:
        for name in self.names:
            if not 2 <= len(name) <= LONGEST or not name.isprintable() or len(name.split()) != 1 or not cells(name):
                raise UsageError(f"{name[:40]!r} cannot be a special word: write 2 to {LONGEST} visible characters")
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"{', '.join(self.names)}: each special word needs a name of its own")

    @property
    def names(self) -> tuple[str, ...]:
        """The four names: padding, unknown, begin, end."""
        return tuple(self.to_options().values())

    def to_options(self) -> Mapping[str, str]:
        """The names by what they are for."""
        return dataclasses.asdict(self)


SPECIALS = Specials()
