"""Breaking a model on purpose: one thing computed otherwise, to see what it was good for.

`BREAKS` is the table of them; each is a change of the program, made of operations that explain their cells as all do.
"""

from tui_transformer.diagnosis.breaking.breaks import BREAKS, Break, broken, fitting

__all__ = ["BREAKS", "Break", "broken", "fitting"]
