"""Reading a suite: a folder, zero's manifest, or the name of one that is shipped. Nothing is executed."""

import importlib
from pathlib import Path
from typing import Final

from turntrace.bench.folder import read_folder
from turntrace.bench.shipped import PUBLISHED, SUITES
from turntrace.bench.tasks import Fault, Origin, Suite, SuiteError
from turntrace.bench.zero import read_zero
from turntrace.errors import MissingExtraError

__all__ = ["load_suite"]

MANIFEST: Final = "suite.toml"


def load_suite(path: str | Path) -> Suite:
    """The suite at ``path``: a folder with suite.toml, a JSON manifest of zero's, or a shipped name.

    Raises:
        SuiteError: with every fault that was found.
        MissingExtraError: without the packages of the extra ``bench``.
    """
    _require_pydantic()
    found = Path(path)
    if not found.exists() and str(path) in PUBLISHED:
        found = SUITES / str(path)
    faults: list[Fault] = []
    if found.is_dir():
        suite = read_folder(found, _origin, faults)
    elif found.is_file():
        suite = read_zero(found, faults)
    else:
        names = ", ".join(sorted(PUBLISHED))
        message = f"is neither a folder with {MANIFEST}, nor a manifest, nor a shipped suite ({names})"
        faults.append(Fault(file=str(path), line=None, field="", message=message))
        suite = None
    if faults or suite is None:
        raise SuiteError(sorted(faults, key=lambda fault: (fault.file, fault.line or 0)))
    return suite


def _require_pydantic() -> None:
    try:
        importlib.import_module("turntrace.bench.schema")
    except ImportError as error:
        raise MissingExtraError("reading a suite", "bench") from error


def _origin(name: str, sha256: str) -> Origin:
    """A suite is ours if it is byte for byte what was published under its name, wherever it lies."""
    return Origin.SHIPPED if PUBLISHED.get(name) == sha256 else Origin.FOLDER
