"""The commands that the README and the help texts show, taken from these."""

from __future__ import annotations

import re

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(\.venv/bin/)?(tui-transformer|python3?|pip|\.ci/run)( |$)")


def of_readme(text: str) -> list[str]:
    """Lines of shell, and spans of code that are commands.

    In a cell of a table, what stands beside a command of the program is one too: `tui-transformer models`, `info`.
    """
    lines = [line for kind, block in FENCED.findall(text) if kind == "sh" for line in block.splitlines()]
    for cell in re.split(r"\n|(?<!\\)\|", FENCED.sub("", text)):
        first, *more = [*SPAN.findall(cell), ""]
        table = first.startswith("tui-transformer ") and cell.startswith(" `") and cell.endswith(" ")
        lines += [f"tui-transformer {span}" for span in more if span and table] if table else []
        lines += [span for span in SPAN.findall(cell) if COMMAND.match(span)]
    return list(dict.fromkeys(lines))


def python_of_readme(text: str) -> list[str]:
    """The programs in Python."""
    return [block for kind, block in FENCED.findall(text) if kind == "python"]


def of_help(text: str) -> list[str]:
    """The examples of a help text; a line that was wrapped goes on until the next empty one."""
    paragraphs = re.findall(r"^  Examples?: (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def names_of_help(text: str) -> list[str]:
    """The names in the list of commands."""
    _, _, listed = text.partition("\nCommands:\n")
    return re.findall(r"^  (\S+)", listed, re.MULTILINE)
