"""`rollout`: how much of each input token has reached each token after a layer."""

from __future__ import annotations

from tui_transformer.analysis.attentions import Reader, attentions, chosen_group, in_layer
from tui_transformer.analysis.rollout import Rollout
from tui_transformer.cli.commands.rollout import Request
from tui_transformer.cli.output import emit, page
from tui_transformer.cli.session import open_session
from tui_transformer.report import text
from tui_transformer.report.export import FORMATS
from tui_transformer.views.step_view import rollout_view


def run(request: Request) -> None:
    """Print a line a token.

    Raises:
        InputError: There is no such stack or layer.
    """
    session = open_session(request)
    program = session.trace.program
    steps = attentions(program, chosen_group(program, f"{request.of or ''} self-attention"))
    step = in_layer(steps, steps[-1].layer if request.layer is None else request.layer)[0]
    rolled = Rollout(session.trace, steps, Reader(session.model.vocabulary)).after(step.layer)
    view = rollout_view(step, rolled, session.labels)
    if request.format == "text":
        emit([text.render(view, page(everything=request.everything))])
    else:
        emit(FORMATS[request.format](view))
