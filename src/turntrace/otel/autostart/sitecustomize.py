"""Start recording in the Python that ``turntrace run`` started, then get out of its way.

``run`` puts this folder first on PYTHONPATH, so this runs before any other code, in whatever Python the
command starts: also one that knows nothing of turntrace, which then goes on as if nothing had been.
That is why this file imports nothing at first, keeps to the syntax of every Python 3 and says nothing.
"""

import os
import sys

__all__ = []

_PREFIX = "TURNTRACE_RUN_"
_FOLDER = __file__.rpartition(os.sep)[0]


def _main() -> None:
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    handed = {name: text for name, text in os.environ.items() if name.startswith(_PREFIX)}
    if _PREFIX + "THROUGH" not in handed and _PREFIX + "CHILDREN" not in handed:
        _forget()
    try:
        _run_shadowed()
    finally:
        if handed.get(_PREFIX + "PARENT") in (None, str(os.getppid())):
            _start(handed)


def _forget() -> None:
    """Take out of the environment what starts recording, so that child processes are left alone."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _FOLDER in entries:
        entries.remove(_FOLDER)
        os.environ["PYTHONPATH"] = os.pathsep.join(entries)
        if not entries:
            del os.environ["PYTHONPATH"]
    for name in list(os.environ):
        if name.startswith(_PREFIX):
            del os.environ[name]


def _run_shadowed() -> None:
    """Run the sitecustomize that this one hides, if there is one, as the module of that name."""
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # another file: this folder is no longer on the path
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)  # whoever imports this module looks for it there


def _start(handed: "dict[str, str]") -> None:
    try:
        from turntrace.otel.autostart import start
    except (ImportError, SyntaxError):  # not installed, or a Python too old for it
        _note(handed.get(_PREFIX + "NOTES"))
        return
    start(handed, _forget)


def _note(path: "str | None") -> None:
    """Tell ``run`` that this Python lacks turntrace; it is the one who says so."""
    if not path:
        return
    try:
        with open(path, "a") as notes:  # noqa: PTH123  # pathlib is not imported for a line
            notes.write("lacking\t" + (sys.executable or "python") + "\t\n")
    except OSError:
        pass  # nobody is left to be told


if __name__ == "sitecustomize":
    _main()
