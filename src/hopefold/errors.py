"""The exceptions and warnings of hopefold.

Each error is a `HopefoldError` and the built-in exception that fits, so that both
``except HopefoldError`` and ``except ValueError`` catch it. A message names what is wrong, with the
user's own names and numbers, then what to do.
"""

from __future__ import annotations

import sys
import warnings


class HopefoldError(Exception):
    """Base class of all errors that hopefold raises on purpose."""


class InvalidInput(HopefoldError, ValueError):
    """Data that cannot be used: NaN, a single class, a wrong number of columns."""


class ConstantRows(InvalidInput):
    """All rows are equal, so contributions to their positions are undefined."""


class InvalidType(HopefoldError, TypeError):
    """Data of a type that cannot be used: complex numbers, non-numeric objects."""


class InvalidParameter(HopefoldError, ValueError):
    """A parameter outside its range, or parameters that contradict each other."""


class Diverged(HopefoldError, ArithmeticError):
    """A fit whose loss became NaN or infinite, or increased beyond a threshold."""


class BrokenFile(HopefoldError, ValueError):
    """A model file that is truncated, modified, of a newer format, or not a model file."""


class NoSuchFolder(HopefoldError, FileNotFoundError):
    """The folder of an output file does not exist."""


class DataNotFound(HopefoldError, FileNotFoundError):
    """A data set that is not in the user's folder, not in the cache, and cannot be downloaded."""


class WrongChecksum(HopefoldError, ValueError):
    """A file of a data set that is not the original file."""


class MissingPackage(HopefoldError, ImportError):
    """An optional package is required."""


class NoRoomOnDisk(HopefoldError, OSError):
    """A temporary file cannot be written."""


class CannotWrite(HopefoldError, OSError):
    """A file cannot be written: the disk is full or read-only."""


class NoCluster(HopefoldError, OSError):
    """A Dask cluster does not respond, has no workers, or has lost its data."""


class CannotExport(HopefoldError, ValueError):
    """A model that cannot be exported to ONNX or C, or whose export would give other results."""


class NotEnoughMemory(HopefoldError, MemoryError):
    """A fit that needs more memory than is free."""


class LostProcess(HopefoldError, ConnectionError):
    """Another process of the same fit has ended or cannot be reached."""


class Stopped(KeyboardInterrupt):
    """A fit with a checkpoint was stopped by Ctrl-C; the message says how to resume."""


class CheckpointWarning(UserWarning):
    """A checkpoint cannot be written; the last complete one stays."""


class SmallerStepWarning(UserWarning):
    """The loss diverged: the epoch is repeated with a smaller learning rate."""


class InterruptedWarning(UserWarning):
    """The fit was interrupted, and returns the best map so far."""


class TimeLimitWarning(UserWarning):
    """The fit has ended early, as its time limit asks."""


class NoValidationWarning(UserWarning):
    """There are too few rows to hold any out, so there is no validation error."""


class RareClassWarning(UserWarning):
    """A class has fewer rows than the exemplars asked for."""


class MarkerWarning(UserWarning):
    """The missing-label marker occurs nowhere; it may be misspelled."""


class ChanceWarning(UserWarning):
    """The held-out error is not clearly lower than that of always predicting the majority class."""


class UnstableInteractionsWarning(UserWarning):
    """Two fits with different seeds disagree on the feature interactions of the map."""


class RoundingWarning(UserWarning):
    """Rows need more digits than float32 has, which is the input type of an exported model."""


class UncheckedWarning(UserWarning):
    """An exported file could not be compared with its model."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the line of the user's code that called hopefold."""
    depth, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "hopefold":
        if frame.f_back is None:
            break
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
