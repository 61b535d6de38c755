"""Exercises: steps of a transformer to be written by a learner, run apart, and explained where they are wrong."""

from tui_transformer.course.checking import Finding, check, check_command
from tui_transformer.course.exercise import Course, Exercise, open_course

__all__ = ["Course", "Exercise", "Finding", "check", "check_command", "open_course"]
