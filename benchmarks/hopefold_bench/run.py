"""Run the missing jobs, each in a process of its own, several at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from hopefold_bench.install_hints import skipped
from hopefold_bench.measure import departures, settings_of
from hopefold_bench.methods import METHODS
from hopefold_bench.models import MODELS
from hopefold_bench.plans import Job
from hopefold_bench.records import Record, alike, append, read_records, results_file
from hopefold_bench.small_sets import missing_package

#: One thread per run, so that times are comparable whatever runs in parallel.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

Report = Callable[[str], None]


def run(
    jobs: Sequence[Job], folder: Path, *, workers: int, report: Report, models: Path = MODELS
) -> int:
    """Run jobs, append a record for each success, and count the failures.

    Jobs on the features of the convnet run after all others, which train it.
    """
    first = [job for job in jobs if job.data != "vgg"]
    if 0 < len(first) < len(jobs):
        failed = run(first, folder, workers=workers, report=report, models=models)
        then = [job for job in jobs if job.data == "vgg"]
        return failed + run(then, folder, workers=workers, report=report, models=models)
    failed, start = 0, time.perf_counter()
    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        waiting = {pool.submit(run_alone, job, models): job for job in jobs}
        for n_done, finished in enumerate(as_completed(waiting), start=1):
            job, remain = waiting[finished], f"{len(jobs) - n_done} left"
            try:
                record = finished.result()
            except RunFailed as reason:
                failed += 1
                report(f"{job}: failed: {reason} ({remain})")
                continue
            append(results_file(folder, job.data, quick=job.quick), record.to_line())
            minutes = (time.perf_counter() - start) / 60
            report(f"{job}: {summary(record)} ({remain}, {minutes:.1f} min so far)")
    finally:  # after an interruption, start no other job
        pool.shutdown(wait=False, cancel_futures=True)
    return failed


def missing(jobs: Sequence[Job], folder: Path, report: Report, *, again: bool = False) -> list[Job]:
    """The jobs without a record, or all with ``again``; reports which are skipped."""
    records = {
        (data, quick): read_records(folder, data, quick=quick)
        for data, quick in {(job.data, job.quick) for job in jobs}
    }
    methods = {job.method: METHODS[job.method].missing for job in jobs}
    sets = {job.data: missing_package(job.data) for job in jobs}
    for name, package in (methods | sets).items():
        if package:
            report(skipped(name, package))
    return [
        job
        for job in jobs
        if not is_skipped(job) and (again or not is_done(job, records[job.data, job.quick]))
    ]


def is_skipped(job: Job) -> bool:
    """Does the job need a package that is not installed?"""
    return bool(METHODS[job.method].missing or missing_package(job.data))


def summarize_plan(to_do: Sequence[Job], jobs: Sequence[Job], workers: int) -> str:
    """The numbers of runs to do and of skipped runs."""
    n_skipped = sum(is_skipped(job) for job in jobs)
    skipped_text = f", {n_skipped} skipped" if n_skipped else ""
    return f"{len(to_do)} of {len(jobs)} runs to do{skipped_text}, {workers} at a time"


def is_done(job: Job, records: Sequence[Record]) -> bool:
    """Is there a record of this job with its current settings?"""
    estimator = job.make()
    settings, changed = settings_of(estimator), departures(estimator)
    return any(
        (record.method, record.split, record.part) == (job.method, job.split, job.part)
        and alike(record.settings, settings)
        and changed <= record.settings.keys()
        for record in records
    )


class RunFailed(Exception):
    """A run ended without a record; the message gives the reason in one line."""


def run_alone(job: Job, models: Path = MODELS) -> Record:
    """Run one job in a process of its own, so that its time and memory can be measured.

    The process ends when this one does: it reads from the pipe that is its stdin.
    """
    arguments = [json.dumps(job.as_json()), str(models)]
    command = [sys.executable, "-m", "hopefold_bench.single_run", *arguments]
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=os.environ | ONE_THREAD,
        ) as process,
    ):
        assert process.stdout is not None
        printed = process.stdout.read().decode().splitlines()
        if process.wait() == 0 and printed:
            return Record(**json.loads(printed[-1]))
        stderr.seek(0)
        lines = stderr.read().decode(errors="replace").strip().splitlines()
        raise RunFailed(lines[-1] if lines else f"the process ended with {process.returncode}")


def summary(record: Record) -> str:
    """The errors and the time of a run, as text."""
    errors = ", ".join(f"{name} {100 * error:.2f} %" for name, error in record.errors.items())
    return f"{errors}; {record.seconds_fit:.1f} s"
