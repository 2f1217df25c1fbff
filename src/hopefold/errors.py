"""Everything that can go wrong, named.

Each error is a `HopefoldError` and the built-in exception that fits, so that both
``except HopefoldError`` and ``except ValueError`` catch it. A message says what is wrong in the
user's own names and numbers, then what to do.
"""

from __future__ import annotations

import sys
import warnings


class HopefoldError(Exception):
    """Base of all errors that hopefold raises on purpose."""


class InvalidInput(HopefoldError, ValueError):
    """Data that cannot be used: NaN, one class, the wrong number of columns."""


class ConstantRows(InvalidInput):
    """Rows that are all the same, asked for what moves them apart."""


class InvalidType(HopefoldError, TypeError):
    """Data of a kind that cannot be used: complex numbers, objects that are no numbers."""


class InvalidParameter(HopefoldError, ValueError):
    """A setting outside its range, or two settings that contradict each other."""


class NotExplained(InvalidParameter, AttributeError):
    """A map that products of features do not explain: it has no such attribute."""


class Diverged(HopefoldError, ArithmeticError):
    """A fit whose loss is no longer a number, or has risen beyond all measure."""


class BrokenFile(HopefoldError, ValueError):
    """A model file that is cut short, altered, of a newer format, or no model file at all."""


class NoSuchFolder(HopefoldError, FileNotFoundError):
    """A file is to be written into a folder that does not exist."""


class DataNotFound(HopefoldError, FileNotFoundError):
    """A data set that is neither in the user's folder nor in the cache, nor to be downloaded."""


class WrongChecksum(HopefoldError, ValueError):
    """A file of a data set that is not the original."""


class MissingPackage(HopefoldError, ImportError):
    """An optional package is needed for what was asked."""


class NoRoomOnDisk(HopefoldError, OSError):
    """A temporary file cannot be written."""


class CannotWrite(HopefoldError, OSError):
    """A file cannot be written: no room, or a disk that is read only."""


class NoCluster(HopefoldError, OSError):
    """A Dask cluster that does not answer, has no workers, or has lost what it was asked for."""


class CannotExport(HopefoldError, ValueError):
    """A model that cannot be written as a graph or as C, or that would answer otherwise there."""


class NotEnoughMemory(HopefoldError, MemoryError):
    """A fit that would need more memory than there is."""


class LostProcess(HopefoldError, ConnectionError):
    """Another process of the same fit has ended, or cannot be reached."""


class Stopped(KeyboardInterrupt):
    """A fit with a checkpoint that Ctrl-C has stopped. Not an error, but it says how to go on."""


class CheckpointWarning(UserWarning):
    """How far a fit has come cannot be written: the last that could be stays."""


class SmallerStepWarning(UserWarning):
    """A loss was no longer a number: the fit went back, and goes on with a smaller step."""


class NoValidationWarning(UserWarning):
    """There are too few rows to hold any out: nothing tells how good the map is."""


class RareClassWarning(UserWarning):
    """A class has fewer rows than the exemplars asked for."""


class MarkerWarning(UserWarning):
    """The marker of a missing label marks nothing: it may be misspelt."""


class ChanceWarning(UserWarning):
    """Held-out rows are not clearly judged better than by always naming the commonest class."""


class UnstableInteractionsWarning(UserWarning):
    """Two fits with other seeds do not agree on the products of features that drive the map."""


class RoundingWarning(UserWarning):
    """Rows need more digits than float32 has, in which an exported model takes them."""


class UncheckedWarning(UserWarning):
    """An exported file that could not be compared with its model."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn, and name the line of the user's own code that called hopefold."""
    depth, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "hopefold":
        if frame.f_back is None:
            break
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
