"""Untrusted files on the command line: a one-line error, and no control characters."""

from __future__ import annotations

import random

from cells import write_cells
from faults.forged_files import forged
from hopefold.persistence import store


def test_info_of_forged_files_is_told_or_is_a_mistake_and_never_a_bug(run, cells_model, here):
    content, chance = cells_model.read_bytes(), random.Random(0)
    statuses = set()
    for _ in range(120):
        (here / "forged.hope").write_bytes(forged(content, content, chance)[1])
        done = run("info", "forged.hope", status=None)
        assert done.exit_code in (0, 2), done.output
        assert "\x1b" not in done.output
        statuses.add(done.exit_code)
    assert statuses == {0, 2}


def test_names_in_a_model_are_no_words_to_the_terminal_and_no_markup(run, cells_model, here):
    manifest, tensors = store.read(cells_model)
    manifest["columns"]["label"] = "\x1b[2J[red]type[/]"
    manifest["columns"]["values"] = {"[/bold]\x07": ["\x9b2J"]}
    store.write(here / "m.hope", manifest, tensors)
    told = run("info", "m.hope").output
    assert "�[2J[red]type[/]" in told
    assert "encoded [/bold]�" in told
    assert not {"\x1b", "\x07", "\x9b"} & set(told)


def test_names_in_a_table_are_no_words_to_the_terminal(run, here):
    table = write_cells(here / "t.csv")
    table.write_text(table.read_text().replace("tissue", "\x1b[2Jtissue"))
    said = run("fit", table, "--label", "type", "--drop", "cell", "-o", "m.hope", status=2).stderr
    assert "\x1b" not in said
