"""Make parts on a Dask cluster, which may lose workers meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hopefold.cli.batch.parts import Part, make
from hopefold.errors import CannotWrite, DataNotFound, MissingPackage, NoCluster

if TYPE_CHECKING:
    from distributed import Client

#: Seconds for a scheduler to answer, and to be without any worker.
ANSWERS_WITHIN, WORKERS_WITHIN = 10, 30

#: The address that starts a cluster on this machine, for this run only.
LOCAL = "local"

SCHEDULER_GONE = (
    "the Dask scheduler has stopped: start it, and run this again; finished parts are kept."
)


def make_all(
    parts: Sequence[Part], address: str, *, load: Callable[[], Any], read_options: Mapping[str, Any]
) -> None:
    """Make parts on a cluster; the first error ends the run, and finished parts are kept.

    The model is the result of a task: each worker gets it once, and Dask recomputes it if all
    workers that hold it die. Scattered data would be lost.
    """
    with _quiet(), _connect(address, len(parts)) as client:
        shared = client.submit(_itself, load(), pure=False)
        futures = client.map(make, parts, model=shared, read_options=dict(read_options), pure=False)
        _wait(client, futures, {one.key: part for one, part in zip(futures, parts, strict=True)})


def _itself(model: Any) -> Any:
    return model


@contextmanager
def _connect(address: str, n_parts: int) -> Iterator[Client]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingPackage(
            f"--dask needs {error.name}, which is not installed: pip install 'hopefold[dask]'."
        ) from error
    if address != LOCAL:
        client = _answering(address, Client)
        try:
            yield client
        finally:
            client.close(timeout=ANSWERS_WITHIN)
        return
    from dask.system import CPU_COUNT

    with (
        LocalCluster(
            n_workers=max(1, min(CPU_COUNT, n_parts)),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _answering(address: str, client: type[Client]) -> Client:
    """Return a client of a scheduler, or raise an error after a time limit.

    It connects in a thread, which is abandoned if the other side accepts and never answers.
    """
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(client(address, timeout=ANSWERS_WITHIN, set_as_default=False))
        except Exception as error:
            found.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWERS_WITHIN + 0.5)
    if found and not isinstance(found[0], Exception):
        return found[0]
    why = f" ({found[0]})" if found and not isinstance(found[0], OSError) else ""
    raise NoCluster(
        f"no Dask scheduler answers at {address}{why}: give the address that dask scheduler prints "
        f"(tcp://host:8786), or --dask {LOCAL}."
    )


def _wait(client: Client, futures: Sequence[Any], parts: Mapping[str, Part]) -> None:
    """Wait until all parts are done; other workers take over the tasks of one that dies."""
    from distributed import as_completed

    coming, n_waiting = as_completed(futures, loop=client.loop), len(futures)
    served = asked = time.monotonic()
    while n_waiting:
        done = coming.next_batch(block=False)
        n_waiting -= len(done)
        for future in done:
            _result(future, parts[future.key])
        now = time.monotonic()
        if not done and now - asked > 1:
            asked = now
            served = now if _has_workers(client) else served
            if now - served > WORKERS_WITHIN:
                raise NoCluster(
                    f"the Dask cluster has had no worker for {WORKERS_WITHIN} s: start some (dask "
                    "worker), and run this again; finished parts are kept."
                )
        if not done:
            time.sleep(0.02)


def _has_workers(client: Client) -> bool:
    try:
        return bool(client.scheduler_info(n_workers=1)["workers"])
    except Exception:  # the scheduler has stopped: the futures raise it
        return False


def _result(future: Any, part: Part) -> None:
    """Raise errors of a worker again, as errors that the user can act on."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        future.result()
    except (DataNotFound, CannotWrite, FileNotFoundError) as error:
        raise type(error)(
            f"{error} A worker reports this: all workers must have access to the same folders."
        ) from error
    except KilledWorker as error:
        n_died = error.allowed_failures + 1
        raise NoCluster(
            f"{part.name} has failed, {n_died} worker{'s' * (n_died > 1)} died over it: give them "
            "more memory, or make the file smaller, and run this again; finished parts are kept."
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise NoCluster(SCHEDULER_GONE) from error
    except ImportError as error:
        raise MissingPackage(
            f"a worker lacks a package ({error}): install the same hopefold there, "
            "pip install 'hopefold[cli,dask]'."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Turn off the log messages of the cluster; its errors are still raised."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
