"""The exercises of the course: what each asks, which are done, and the step that each is about."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.course.exercise import Exercise, open_course, progress_path, read_progress
from tui_transformer.course.sources import step_of
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Page
from tui_transformer.explorer.shell.overview import Overview, Texts
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible


class ExercisesScreen(Overview, tool="exercises"):
    """A list of exercises, and the task of the one under the cursor."""

    DEFAULT_CSS = """
    ExercisesScreen {
        LineList { height: auto; max-height: 50%; }
        #task { height: 1fr; padding: 1 1 0 1; scrollbar-size-vertical: 1; }
    }
    """

    def __init__(self, port: Port) -> None:
        """Begin with the first that is not done."""
        super().__init__(port)
        course = open_course()
        self._exercises, self._done = course.exercises, read_progress(progress_path(), course.name).done

    def content(self) -> ComposeResult:
        yield LineList()
        with Page(id="task"):
            yield Static(markup=False)

    def begin(self) -> None:
        def line(index: int) -> Text:
            each = self._exercises[index]
            mark = "✓" if each.name in self._done else " "
            return Text(f" {mark} {index + 1:>2}  {fit(each.name, 16)}  {visible(each.title)}", no_wrap=True)

        self.lines.show(len(self._exercises), line)
        self.lines.styles.height = len(self._exercises)
        self.lines.cursor = next((i for i, each in enumerate(self._exercises) if each.name not in self._done), 0)
        self.moved()

    @property
    def _exercise(self) -> Exercise:
        return self._exercises[self.lines.cursor or 0]

    def texts(self) -> Texts:
        name = self._exercise.name
        return Texts(
            "Exercises: write a transformer, step by step",
            detail=(f"tui-transformer exercise start {name}", f"tui-transformer exercise check {name}"),
            progress=f"{sum(each.name in self._done for each in self._exercises)} of {len(self._exercises)} done",
        )

    def moved(self) -> None:
        each = self._exercise
        paragraphs = (" ".join(paragraph.split()) for paragraph in each.task.split("\n\n"))
        about = f"{each.function}({', '.join(each.inputs)}) → {', '.join(each.answers)}"
        text = "\n\n".join((*paragraphs, f"{about}   ·   {each.model}: {each.text}"))
        self.query_one("#task Static", Static).update(Content("\n".join(map(visible, text.splitlines()))))
        self.show_lines()

    def chosen(self) -> None:
        """Explore what it is about: its model and sentence, at its step; undo goes back to what was before."""
        exercise, port = self._exercise, self.port
        options = ModelOptions(model=exercise.model, budget=port.session.budget)

        def show(session: Session) -> None:
            port.change(session, Position(step_of(exercise, session.trace.program) or session.stops[0]))
            port.say(f"{exercise.name}: {exercise.title} · tui-transformer exercise start {exercise.name}")

        self.action_leave()
        port.ask("open", lambda _: open_session(options, exercise.text, None), show)

    action_explore = chosen
