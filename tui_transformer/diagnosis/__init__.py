"""A dump of somebody else's program beside a model: which step is wrong, and what is wrong with it."""

from tui_transformer.diagnosis.diagnose import diagnose, input_of
from tui_transformer.diagnosis.diagnosis import Compared, Diagnosis, First
from tui_transformer.diagnosis.reference_values import Input

__all__ = ["Compared", "Diagnosis", "First", "Input", "diagnose", "input_of"]
