"""Labels of bounded cardinality: a hundred names each, two thousand label sets a metric."""

from typing import Final

from turntrace.core.metric_table import MAX_LABEL_SETS, MAX_NAMES
from turntrace.otel.guard import Guard

__all__ = ["OTHER", "UNKNOWN", "BoundedLabels", "BoundedNames"]

OTHER: Final = "_other"
UNKNOWN: Final = "unknown"


class BoundedNames:
    """The first MAX_NAMES values of one label pass; the rest become ``_other`` and are counted.

    ``declared`` ones always pass.
    """

    __slots__ = ("_declared", "_guard", "_known")

    def __init__(self, guard: Guard, declared: frozenset[str] = frozenset()) -> None:
        self._guard = guard
        self._declared = declared
        self._known: set[str] = set()

    @property
    def known(self) -> frozenset[str]:
        """The names that passed so far without being declared."""
        return frozenset(self._known.copy())  # at once: another thread may be adding one

    def __call__(self, name: str | None) -> str:
        """``name`` or ``_other``; an unknown name is ``unknown``."""
        if name is None:
            return UNKNOWN
        if name not in self._known and name not in self._declared:
            if len(self._known) >= MAX_NAMES:
                self._guard.drop("cardinality")
                return OTHER
            self._known.add(name)
        return name


class BoundedLabels:
    """Label sets of one metric: beyond MAX_LABEL_SETS every name in a new one becomes ``_other``.

    Ten names of one label and a hundred of another make a thousand sets, so that bounds on names alone
    bound nothing that a backend could pay for. ``names`` are shared by the metrics of a process.
    """

    __slots__ = ("_free", "_guard", "_known", "_names")

    def __init__(self, guard: Guard, names: dict[str, BoundedNames]) -> None:
        self._guard = guard
        self._names = names
        self._known: set[tuple[str, ...]] = set()
        self._free = frozenset(names)

    def __call__(self, **labels: str | None) -> dict[str, str]:
        """``labels`` with each name bounded; a label that is None is ``unknown``."""
        found = {
            label: self._names[label](value) if label in self._free else value or UNKNOWN
            for label, value in labels.items()
        }
        key = (*found, *found.values())
        if key not in self._known:
            if len(self._known) >= MAX_LABEL_SETS:
                self._guard.drop("cardinality")
                return {label: OTHER if label in self._free else value for label, value in found.items()}
            self._known.add(key)
        return found
