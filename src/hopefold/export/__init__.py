"""Fitted models for places without hopefold: an ONNX graph, or one file of C.

>>> from hopefold.export import to_c, to_onnx
"""

from hopefold.export.files import Export, to_c, to_onnx
from hopefold.export.parity import Parity

__all__ = ["Export", "Parity", "to_c", "to_onnx"]
