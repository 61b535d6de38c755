"""Files of arrays that people write, whatever their format."""

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values
from tui_transformer.diagnosis.dumps.formats import is_dump_folder, open_dump

__all__ = ["Dump", "Tensor", "Values", "is_dump_folder", "open_dump"]
