"""What is installed is what was meant, and nothing is fetched behind anybody's back."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

#: Of torch each platform has a build of its own; the bench's extras are not part of CI.
NOT_LOCKED = {"torch"}
NOT_INSTALLED = ("bench",)


def pins(name):
    """Names and requirements of a file, without the checksums of a lock."""
    lines = (line.removesuffix(" \\") for line in (ROOT / name).read_text().splitlines())
    found = [Requirement(line) for line in lines if not line.startswith(("#", " "))]
    return {canonicalize_name(one.name): one for one in found}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_pin_but_torch_is_in_the_lock_in_the_same_version():
    wanted = {name: str(one) for name, one in pins("constraints.txt").items()}
    locked = {name: str(one) for name, one in pins("requirements.lock").items()}
    assert wanted.keys() - locked.keys() == NOT_LOCKED
    assert {name: wanted[name] for name in locked} == locked


def test_every_pin_of_the_lock_has_checksums():
    for entry in re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text())[1:]:
        pin, *hashes = entry.strip().split(" \\\n")
        assert re.match(r"[\w.-]+==[\w.]+", pin)
        assert hashes, pin
        assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}", one) for one in hashes), pin


def test_everything_that_the_project_asks_for_is_pinned(project):
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra, requirements in project["project"]["optional-dependencies"].items():
        asked += [] if extra in NOT_INSTALLED else requirements
    pinned = pins("constraints.txt")
    for requirement in map(Requirement, asked):
        (version,) = pinned[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(version.version), requirement


#: Everything that people do, under a watch that stops whatever turns to the network.
AT_WORK = """
import sys

def watch(event, details):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        print("network:", event, details, flush=True)
        raise OSError("there is no network")

sys.addaudithook(watch)
import warnings
warnings.simplefilter("ignore")
import numpy
import hopefold
import hopefold.baselines, hopefold.evaluation, hopefold.cli.app
from hopefold.data.tables import read_table
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene
table = read_table("iris")
model = hopefold.SHOPE(max_epochs=2, random_state=0).fit(table)
model.save("m.hope")
model = hopefold.load("m.hope")
model.transform(table), model.predict(table), model.interactions()
write_report(make_scene(model, table.X, table.y), "r.html")
model.plot(table.X, table.y).savefig("map.png")
from hopefold.export import to_c, to_onnx
to_onnx(model, "m.onnx"), to_c(hopefold.SHOPE(n_factors=2, max_epochs=1).fit(table), "m.c")
print("done")
"""


def test_nothing_asks_the_network_at_import_at_fit_for_a_report_or_an_export(tmp_path):
    command = [sys.executable, "-c", AT_WORK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stdout + done.stderr
    assert (tmp_path / "r.html").exists()


def test_the_watch_stops_what_turns_to_the_network(tmp_path):
    watch, _ = AT_WORK.split("import warnings")
    command = [sys.executable, "-c", f"{watch}import socket; socket.create_connection(('a', 1))"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("network: socket.")
