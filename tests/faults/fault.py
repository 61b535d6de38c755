"""A fault of a line, with the test that has to notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        what: What goes wrong with it.
        file: Of the package.
        line: What stands there, exactly and once; "" for a file that is not there.
        planted: What is put in its place.
        test: The test that fails then, with its file.
    """

    what: str
    file: str
    line: str
    planted: str
    test: str
