"""Which folders an agent may not see, and which it needs although they lie in one of those."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from turntrace.bench.shipped import SUITES
from turntrace.bench.tasks import Suite

__all__ = ["hidden_folders", "program_prefixes"]


def hidden_folders(suite: Suite, home: Path) -> tuple[Path, ...]:
    """The home, every place for temporary files, and all that holds answers: this suite and the shipped ones."""
    own = suite.path if suite.path.is_dir() else suite.path.parent
    templates = SUITES.with_name("templates")
    temporary = (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - to hide them
    return tuple(dict.fromkeys((home, *temporary, own.resolve(), SUITES, templates)))


def program_prefixes(argv: Sequence[str], home: Path) -> tuple[Path, ...]:
    """Where the program lies: its folder, or the whole prefix where it is in a bin; never the home itself."""
    found = shutil.which(argv[0])
    if found is None:
        return ()
    places = []
    for path in dict.fromkeys((Path(found).absolute(), Path(found).resolve())):
        prefix = path.parent.parent if path.parent.name == "bin" else path.parent
        is_broad = home.is_relative_to(prefix)
        places.append(path.parent if is_broad else prefix)
    return tuple(place for place in dict.fromkeys(places) if place != home)
