"""What the figures were taken on, and how busy it was."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turntrace.version import VERSION

__all__ = ["Load", "Machine", "load_now", "machine"]

_STEAL: Final = 8
"""Its place in the first line of /proc/stat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine record. None is unknown."""

    system: str
    release: str
    processor: str
    cores: int
    memory_bytes: int | None
    python: str
    turntrace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One moment: runnable processes averaged over a minute, stolen and all processor ticks so far."""

    load_1: float | None
    steal_ticks: int | None
    ticks: int | None
    frequency_mhz: float | None


def machine() -> Machine:
    """This machine."""
    return Machine(
        system=platform.system(),
        release=platform.release(),
        processor=_of_cpu("model name") or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
        python=platform.python_version(),
        turntrace=VERSION,
    )


def load_now() -> Load:
    """How busy the machine is."""
    ticks = _ticks()
    frequency = _of_cpu("cpu MHz")
    return Load(
        load_1=os.getloadavg()[0],
        steal_ticks=ticks[_STEAL - 1] if len(ticks) >= _STEAL else None,
        ticks=sum(ticks) or None,
        frequency_mhz=float(frequency) if frequency else None,
    )


def _of_cpu(name: str) -> str:
    lines = _lines("/proc/cpuinfo")
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _ticks() -> list[int]:
    lines = _lines("/proc/stat")
    return [int(word) for word in lines[0].split()[1:]] if lines else []


def _memory_bytes() -> int | None:
    found = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), None)
    return int(found) * 1024 if found else None


def _lines(path: str) -> list[str]:
    """Of a file that only Linux has."""
    found = Path(path)
    return found.read_text().splitlines() if found.exists() else []
