"""What a disturbed write leaves: the old file or the new one, whole. The faults are real."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from faults import writes
from hopefold.errors import CannotWrite
from hopefold.persistence import store

#: Write a megabyte, with a limit of half of it.
BEYOND_THE_LIMIT = """
import resource, sys
from hopefold.persistence.store import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (2**19, 2**19))
try:
    write_atomically(sys.argv[1], bytes(2**20))
except OSError as error:
    print(type(error).__name__, error.errno, error)
"""


def test_a_full_disk_names_the_file_and_the_bytes_and_leaves_the_old_file_alone(tmp_path):
    target = tmp_path / "model.hope"
    target.write_bytes(b"old")
    command = [sys.executable, "-c", BEYOND_THE_LIMIT, str(target)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"CannotWrite {errno.EFBIG} cannot write {target} (File too large): ")
    assert "1,048,576 bytes are needed there" in said
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.hope"]


def test_outputs_of_the_command_survive_a_full_disk(tmp_path):
    """A model, a table, a picture and a report; `make faults` tries all outputs."""
    assert not writes.full_disk(4, tmp_path).broken


def test_a_folder_that_is_closed_is_told_in_one_line(tmp_path):
    assert not writes.read_only_folder(2, tmp_path).broken


def test_a_kill_in_the_middle_leaves_a_whole_file(tmp_path):
    assert not writes.killed(12, tmp_path).broken


def test_two_that_write_one_path_do_not_mix(tmp_path):
    assert not writes.two_at_once(150, tmp_path).broken


def test_two_reports_at_once_do_not_mix(tmp_path):
    """Of other titles and of the same path: what is there is one of them, to the byte."""
    model, table = writes.model_and_table(tmp_path)
    target = tmp_path / "report.html"
    command = [sys.executable, "-m", "hopefold", "report", model, table, "-o", str(target)]
    commands = [[*command, "--force", "--title", title] for title in ("first", "other")]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    assert [one.wait() for one in both] == [0, 0]
    there = target.read_bytes()
    subprocess.run(commands[b"<h1>other</h1>" in there], check=True, stdout=subprocess.DEVNULL)
    assert target.read_bytes() == there


def test_what_a_kill_has_left_is_swept_by_a_later_write_of_the_same_file(tmp_path):
    target, other = tmp_path / "model.hope", tmp_path / "other.hope"
    old, new, strange = (
        tmp_path / f"{store._part_of(path)}{name}{store.PART}"
        for path, name in [(target, "old"), (target, "new"), (other, "old")]
    )
    for part in (old, new, strange):
        part.write_bytes(b"half")
    for part in (old, strange):
        os.utime(part, (time.time() - 2 * store.STALE,) * 2)
    store.write_atomically(target, b"whole")
    assert not old.exists()
    assert new.exists(), "somebody may be writing it at this moment"
    assert strange.exists(), "that of another file is not ours to remove"


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    target = tmp_path / ("ü" * 127)
    store.write_atomically(target, b"content")
    assert target.read_bytes() == b"content"


def test_a_folder_that_vanishes_is_one_of_our_errors(tmp_path, monkeypatch):
    """Between the check and the write."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(store, "_sweep", lambda target: folder.rmdir())
    with pytest.raises(CannotWrite, match="No such file or directory"):
        store.write_atomically(folder / "model.hope", b"content")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("verb", ["predict", "info"])
def test_results_that_standard_output_cannot_take_are_a_mistake_and_not_silence(tmp_path, verb):
    model, table = writes.model_and_table(tmp_path)
    arguments = [model, table] if verb == "predict" else [model]
    command = [sys.executable, "-m", "hopefold", verb, *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("hopefold: cannot write standard output (No space left")
    assert done.stderr.count("\n") == 1
