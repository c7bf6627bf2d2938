"""All runs of a plan: in order, some at once, each row written as it finishes, and a stop that loses none."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from turntrace.bench.order import Turn
from turntrace.bench.rows import Row

__all__ = ["campaign"]

_POLL_S = 0.2


def campaign(
    turns: Iterable[Turn],
    run: Callable[[Turn], Row],
    *,
    jobs: int,
    stopping: threading.Event,
    tell: Callable[[Row], None],
) -> bool:
    """Make the runs of ``turns``, ``jobs`` at once; True when all were made.

    ``tell`` gets each row in this thread as it finishes. An interrupt sets ``stopping``, waits for what
    runs to be ended, keeps what had finished, and is not raised. A run that was cut short has no row.
    """
    left = iter(turns)
    pending: set[Future[Row]] = set()
    whole = True
    with ThreadPoolExecutor(jobs, thread_name_prefix="bench-run") as pool:
        try:
            pending = {pool.submit(run, turn) for turn in islice(left, jobs)}
            while pending:
                done, pending = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    tell(future.result())
                pending |= {pool.submit(run, turn) for turn in islice(left, len(done))}
        except KeyboardInterrupt:
            stopping.set()
            whole = False
            for future in wait(pending).done:
                row = future.result()
                if not row.interrupted:
                    tell(row)
        except BaseException:
            stopping.set()  # what runs beside the one that failed is ended, not waited for
            raise
    return whole
