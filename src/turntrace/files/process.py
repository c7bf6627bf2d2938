"""Who wrote a journal and whether that process still lives."""

import os
from pathlib import Path

__all__ = ["is_alive", "started_ticks"]


def started_ticks(pid: int) -> int | None:
    """When process ``pid`` started, in the kernel's ticks since boot; None where /proc is missing.

    Source: proc(5), field 22 of /proc/PID/stat, counted behind the last parenthesis of the name.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat[stat.rindex(b")") + 2 :].split()[19])


def is_alive(pid: int, ticks: int | None) -> bool:
    """Whether ``pid`` runs and is the process that started at ``ticks`` (when both are known)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it lives and belongs to somebody else
        pass
    now = started_ticks(pid)
    return ticks is None or now is None or ticks == now
