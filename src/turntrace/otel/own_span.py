"""A span of ours: the SDK's, with plain attributes in a plain dict and without lists that nobody asked for."""

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.util import BoundedList

__all__ = ["LISTS", "MOST_PLAIN", "PLAIN", "OwnSpan"]

PLAIN: Final = frozenset({str, bool, int, float})
"""Types of values that the SDK takes as they are; a subclass of one is none of them."""

MOST_PLAIN: Final = 32
LISTS: Final = frozenset({"_events", "_links"})


class OwnSpan(Span):
    """The SDK's span, with its attributes in a plain dict while there is nothing to check about them.

    Made by ``OwnTracer``, as a copy of one that the SDK has made; its lists of events and links come into
    being when something asks for them.
    """

    _plain: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        """The lists that the copy was made without."""
        if name not in LISTS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        limits = self._limits
        most = limits.max_events if name == "_events" else limits.max_links
        return vars(self).setdefault(name, BoundedList(most))

    @property
    def attributes(self) -> Mapping[str, Any]:
        """As the SDK's."""
        return super().attributes or {} if self._plain is None else self._plain

    def set_attribute(self, key: str, value: Any) -> None:
        """As the SDK's."""
        with self._lock:
            plain = self._plain
            if (
                plain is not None
                and type(value) in PLAIN
                and type(key) is str
                and key
                and self._end_time is None
                and len(plain) < MOST_PLAIN
            ):
                plain[key] = value
                return
        self._hand_over()
        super().set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """As the SDK's."""
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def _hand_over(self) -> None:
        """From here on the SDK keeps the attributes."""
        with self._lock:
            if self._plain is not None and self._end_time is None:
                most = self._limits.max_span_attributes
                self._attributes = BoundedAttributes(most, self._plain, immutable=False)
                self._plain = None

    def _readable_span(self) -> ReadableSpan:
        if self._plain is None:
            return super()._readable_span()
        own = vars(self)
        return ReadableSpan(
            self._name,
            self._context,
            self._parent,
            self._resource,
            self._plain,
            own.get("_events", ()),
            own.get("_links", ()),
            self._kind,
            self._instrumentation_info,
            self._status,
            self._start_time,
            self._end_time,
            self._instrumentation_scope,
        )
