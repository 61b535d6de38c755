"""List the weights of a model, or write them to files that open again.

Names and shapes are those of the program: a step is x @ weight + bias. What a folder has to hold that a program of
your own writes is in WEIGHTS.md.
"""

from __future__ import annotations

from tui_transformer.cli.typer_layer import App, takes_request
from tui_transformer.cli.weights_options import ExportRequest, ListRequest

app = App(
    rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True, help=__doc__
)


def _list(*, request: ListRequest) -> None:
    """List every weight with its shape, type, bytes, and where its file has it.

    Example: tui-transformer weights list --model question
    """
    from tui_transformer.cli.weights import show_list

    show_list(request)


def _export(*, request: ExportRequest) -> None:
    """Write the weights, one at a time, with their names and shapes.

    Example: tui-transformer weights export --model encoder --d-model 64 --format raw --out mine
    """
    from tui_transformer.cli.weights import write

    write(request)


app.command("list")(takes_request(_list, ListRequest))
app.command("export")(takes_request(_export, ExportRequest))
