"""Ids of runs: sortable by time, unique without coordination."""

import random
import time

__all__ = ["new_run_id"]


def new_run_id() -> str:
    """``run_<UTC yyyymmddHHMMSS>_<12 hex>``: zero's shape with a longer random part."""
    # random reseeds itself after a fork, as the SDK's span ids rely on; a system call for each id costs more
    unique = random.getrandbits(48)
    return f"run_{time.strftime('%Y%m%d%H%M%S', time.gmtime())}_{unique:012x}"
