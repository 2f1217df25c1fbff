"""Every example in the README and the docs runs, and every table in them is generated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fill_tables
from fill_tables import PAGES
from hopefold.cli.app import app


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|console)\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    assert blocks, f"{page.name} has no example"
    names: dict = {}
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, page.name, "exec"), names)
        else:
            for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
                run_command(*command.splitlines())


def run_command(command, *shown):
    """What is shown below a command is among what it prints; nothing but a mistake fails."""
    name, *arguments = shlex.split(command)
    assert name == "hopefold"
    given = None
    if "<" in arguments:
        *arguments, _, file = arguments
        given = Path(file).read_bytes()
    done = CliRunner().invoke(app, arguments, input=given)
    mistake = any(line.startswith("hopefold: ") for line in shown)
    assert done.exit_code == (2 if mistake else 0), done.output
    for line in shown:
        assert line in done.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_results_are_what_their_command_prints(page):
    text = page.read_text()
    assert fill_tables.filled(text) == text
