"""The version of hopefold."""

__version__ = "0.1.0"
