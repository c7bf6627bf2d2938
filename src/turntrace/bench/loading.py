"""Reading a suite: a folder, zero's manifest, or the name of one that is shipped."""

from pathlib import Path

from turntrace.bench.tasks import Suite

__all__ = ["load_suite"]


def load_suite(path: str | Path) -> Suite:
    """The suite at ``path``: a folder with suite.toml, a JSON manifest of zero's, or a shipped name.

    Raises:
        SuiteError: with every fault that was found.
    """
    raise NotImplementedError(path)
