"""How many cores other programs took while something ran: on a busy machine an agent itself is late."""

import os
import time
from pathlib import Path
from typing import Self

__all__ = ["OthersLoad"]

_STAT = Path("/proc/stat")


class OthersLoad:
    """``with OthersLoad() as load``: afterwards ``load.cores`` is the mean, 0 where the machine does not tell."""

    def __init__(self) -> None:
        self.cores = 0.0

    def __enter__(self) -> Self:
        self._began, self._all, self._mine = time.monotonic(), _all_s(), _mine_s()
        return self

    def __exit__(self, *error: object) -> None:
        taken = (_all_s() - self._all) - (_mine_s() - self._mine)
        self.cores = max(0.0, taken / max(time.monotonic() - self._began, 0.001))


def _all_s() -> float:
    """The time that all processors were busy, in seconds."""
    if not _STAT.exists():
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, _STAT.read_text().split(None, 9)[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _mine_s() -> float:
    """The time of this process and of the children it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
