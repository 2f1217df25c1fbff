"""Tables as people have them, a model of one, and the command as it is called."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cells import QUICK, with_gaps, write_cells
from hopefold.cli.app import app


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder that one is in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cells(here):
    return write_cells(here / "cells.csv")


@pytest.fixture(scope="session")
def run():
    """Call the command; the status it should end with is checked."""

    def call(*arguments, status=0, **more):
        result = CliRunner().invoke(app, [str(one) for one in arguments], **more)
        assert result.exit_code == status or status is None, result.output
        if status == 2:
            assert result.stderr.count("\n") == 1, "one line on standard error"
            assert result.stderr.startswith("hopefold: ")
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture(scope="session")
def cells_model(run, tmp_path_factory):
    """A model of cells, fitted on the command line with an encoder and with fills."""
    folder = tmp_path_factory.mktemp("cells")
    table = write_cells(folder / "cells.csv", age=with_gaps())
    model = folder / "cells.hope"
    options = ("--label", "type", "--id", "cell", "--encode", "--missing", "mean")
    run("fit", table, *options, "-o", model, *QUICK)
    return model


@pytest.fixture(scope="session")
def plain_model(run, tmp_path_factory):
    """A model of numbers alone: size and age."""
    folder = tmp_path_factory.mktemp("plain")
    table = write_cells(folder / "plain.csv", tissue=None, cell=None)
    run("fit", table, "--label", "type", "-o", folder / "plain.hope", *QUICK)
    return folder / "plain.hope"


@pytest.fixture(scope="session")
def unlabeled_model(run, tmp_path_factory):
    """A model of size and age that has seen no label; the column of labels is beside it."""
    folder = tmp_path_factory.mktemp("unlabeled")
    table = write_cells(folder / "cells.csv", tissue=None, cell=None)
    options = ("--unlabeled", "--label", "type", "--perplexity", "5")
    run("fit", table, *options, "-o", folder / "cells.hope", *QUICK)
    return folder / "cells.hope"
