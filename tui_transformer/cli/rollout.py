"""`rollout`: how much of each input token has reached each token after a layer."""

from __future__ import annotations

import shutil
import sys
from typing import Literal

from tui_transformer.analysis.attention_rows import Reader
from tui_transformer.analysis.attentions import attentions, chosen_group, in_layer
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import emit
from tui_transformer.cli.session import open_session
from tui_transformer.report import text
from tui_transformer.report.export import FORMATS
from tui_transformer.views.rollout_view import rollout_view


def run(
    flags: Flags, of: str | None, layer: int | None, form: Literal["text", "json", "csv", "svg"], *, everything: bool
) -> None:
    """Print a line a token.

    Raises:
        InputError: There is no such stack or layer.
    """
    session = open_session(flags)
    program = session.trace.program
    steps = attentions(program, chosen_group(program, f"{of or ''} self-attention"))
    step = in_layer(steps, steps[-1].layer if layer is None else layer)[0]
    rolled = Rollout(session.trace, steps, Reader(session.model.vocabulary)).after(step.layer)
    view = rollout_view(step, rolled, session.labels)
    emit([text.render(view, _page(everything=everything))] if form == "text" else FORMATS[form](view))


def _page(*, everything: bool) -> text.Page:
    """As wide as the terminal, or everything."""
    if everything:
        return text.EVERYTHING
    return text.Page(width=shutil.get_terminal_size().columns) if sys.stdout.isatty() else text.DEFAULT_PAGE
