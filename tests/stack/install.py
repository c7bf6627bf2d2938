"""Builds the real servers of the stack from their Go modules into the cache folder of the checkout, each once.

``python tests/stack/install.py`` builds all, ``... jaeger collector`` some. The versions are those of the go.mod
and go.sum beside this file; a stamp made of them tells what is there, so that nothing is built twice.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".servers"
BUILD_S = 3600


@dataclass(frozen=True)
class Program:
    """One binary: the folder of its module, the package in it, and the build tags."""

    module: str
    package: str
    tags: str = "grpcnotrace"

    @property
    def folder(self) -> Path:
        """Where its go.mod is."""
        return HERE / self.module


PROGRAMS = {
    "jaeger": Program("jaeger", "github.com/jaegertracing/jaeger/cmd/jaeger"),
    "collector": Program("collector", "."),
    # without the service discoveries of clouds, which are most of it
    "prometheus": Program("prometheus", "github.com/prometheus/prometheus/cmd/prometheus", "remove_all_sd"),
    "promtool": Program("prometheus", "github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"),
}


def main(names: list[str]) -> int:
    """Build the programs named, or all; 1 when one cannot be had."""
    missing = [name for name in names or PROGRAMS if not built(name)]
    if missing:
        print(f"not to be had: {', '.join(missing)}; tests that need them are skipped, and say so")
    return min(len(missing), 1)


def binary(name: str) -> Path:
    """Where a program is, once it is built."""
    return CACHE / "bin" / name


def is_there(name: str) -> bool:
    """Whether the program was built of what its folder says now."""
    stamp = CACHE / f"{name}.built"
    return binary(name).exists() and stamp.exists() and stamp.read_text() == _wanted(name)


def built(name: str) -> bool:
    """Whether the program is there, after trying to build it."""
    if is_there(name):
        print(f"{name}: is there")
        return True
    go = shutil.which("go")
    if go is None:
        print(f"{name}: no go")
        return False
    began = time.monotonic()
    program = PROGRAMS[name]
    binary(name).parent.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-mod=readonly", "-trimpath", "-tags", program.tags, "-ldflags=-s -w"]
    # the newest toolchain is not fetched, and the machine stays usable meanwhile
    variables = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    done = subprocess.run(
        ["nice", "-n", "10", *command, "-o", str(binary(name)), program.package],
        cwd=program.folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    if done.returncode != 0:
        print(f"{name}: cannot be built:\n{(done.stdout + done.stderr)[-2000:]}")
        return False
    (CACHE / f"{name}.built").write_text(_wanted(name))
    print(f"{name}: built in {time.monotonic() - began:.0f} s")
    return True


def _wanted(name: str) -> str:
    program = PROGRAMS[name]
    found = hashlib.sha256(f"{program.package} {program.tags}".encode())
    for path in sorted(program.folder.iterdir()):
        if path.name in {"go.mod", "go.sum"} or path.suffix == ".go":
            found.update(path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
