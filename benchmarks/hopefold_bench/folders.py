"""Where the repository and the results are, whatever the working directory is."""

from __future__ import annotations

from pathlib import Path

#: Records, figures and kept models. The package is installed in place, never from a wheel.
BENCHMARKS = Path(__file__).resolve().parents[1]

REPOSITORY = BENCHMARKS.parent
