"""Stress tests that need a process of their own, with limited memory or an audit hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from faults.outcome import Outcome

#: Bytes of address space that a test may use beyond what the imports use.
ADDRESS_SPACE = 512 * 2**20


def run_in_process(module: str, times: int, folder: Path) -> Outcome:
    """Run a module as a process; it prints a JSON list of the broken cases."""
    command = [sys.executable, "-m", module, str(times), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        return Outcome(times, (f"the process ended with {done.returncode}: {done.stderr[-500:]}",))
    return Outcome(times, tuple(json.loads(done.stdout)))


def environment() -> dict[str, str]:
    """The environment of a process that imports what this process can import."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def limit_memory() -> None:
    """Limit the address space to what is in use now, plus `ADDRESS_SPACE`."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, used + ADDRESS_SPACE))


class AuditHook:
    """An audit hook that records forbidden events while it is active."""

    def __init__(self, allowed: Path, forbidden: tuple[str, ...]) -> None:
        self.allowed, self.forbidden = str(allowed), forbidden
        self.active, self.seen = False, list[str]()

    def __call__(self, event: str, details: tuple[Any, ...]) -> None:
        """Record the event if it is forbidden, or opens another file than the allowed one."""
        if not self.active:
            return
        other_file = event == "open" and str(details[0]) != self.allowed
        if other_file or event.startswith(self.forbidden):
            self.seen.append(f"{event} {details[:1]}")

    def __enter__(self) -> None:
        self.active = True

    def __exit__(self, *_: object) -> None:
        self.active = False
