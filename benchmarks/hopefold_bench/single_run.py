"""The process of one run: it prints the record as its last line.

The second argument is the folder of saved models.

python -m hopefold_bench.single_run '{"method": "S-HOPE", "data": "digits", "split": 0}'
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path


def main() -> None:
    """Run the job given as JSON."""
    if not sys.stdin.isatty():
        threading.Thread(target=_end_with_parent, daemon=True).start()

    import torch  # after the thread has started: this takes seconds

    from hopefold.errors import HopefoldError
    from hopefold_bench.measure import measure
    from hopefold_bench.models import MODELS
    from hopefold_bench.plans import Job

    torch.set_num_threads(1)
    models = Path(sys.argv[2]) if len(sys.argv) > 2 else MODELS
    try:
        record = measure(Job(**json.loads(sys.argv[1])), models)
    except HopefoldError as error:
        sys.exit(str(error))
    print(record.to_line(), flush=True)


def _end_with_parent() -> None:
    """End this process when the parent, which holds the other end of stdin, has ended."""
    os.read(0, 1)  # not sys.stdin, whose lock would block the exit
    os._exit(1)


if __name__ == "__main__":
    main()
