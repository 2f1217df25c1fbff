"""Export of fitted models for use without hopefold: as an ONNX graph, or as one C file.

>>> from hopefold.export import to_c, to_onnx
"""

from hopefold.export.files import Export, to_c, to_onnx
from hopefold.export.parity import Parity

__all__ = ["Export", "Parity", "to_c", "to_onnx"]
