"""A span of ours: the SDK's, with plain attributes in a plain dict and without lists that nobody asked for."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.util import BoundedList

__all__ = ["LATE", "MOST_PLAIN", "PLAIN", "OwnSpan"]

PLAIN: Final = frozenset({str, bool, int, float})
"""Types of values that the SDK takes as they are; a subclass of one is none of them."""

MOST_PLAIN: Final = 32
LATE: Final = frozenset({"_attributes", "_events", "_links"})
"""Fields of the SDK's span that come into being when something asks for them."""

_ENDED: Final = BoundedAttributes()


class OwnSpan(Span):
    """The SDK's span, with its attributes in a plain dict while there is nothing to check about them.

    Made by ``OwnTracer``, as a copy of one that the SDK has made, without its fields for attributes, events
    and links. Whoever reaches for the SDK's own attributes has them from then on in their place.
    """

    _plain: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        """The fields that the copy was made without."""
        if name not in LATE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "_attributes":
            self._hand_over()
            return vars(self)[name]
        limits = self._limits
        most = limits.max_events if name == "_events" else limits.max_links
        return vars(self).setdefault(name, BoundedList(most))

    @property
    def attributes(self) -> Mapping[str, Any]:
        """As the SDK's."""
        plain = self._plain
        return (super().attributes or {}) if plain is None else MappingProxyType(dict(plain))

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
                plain.pop(key, None)  # set again, it is the newest
                plain[key] = value
                return
        self._hand_over()
        super().set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """As the SDK's."""
        self._hand_over()
        super().set_attributes(attributes)

    def end(self, end_time: int | None = None) -> None:
        """As the SDK's."""
        if self._plain is not None:
            self.__dict__.setdefault(
                "_attributes", _ENDED
            )  # the SDK closes it; what is exported is made below
        super().end(end_time)

    def _hand_over(self) -> None:
        """From here on the SDK keeps the attributes."""
        with self._lock:
            if self._plain is not None:
                most = self._limits.max_span_attributes
                is_over = self._end_time is not None
                self._attributes = BoundedAttributes(most, self._plain, immutable=is_over)
                self._plain = None

    def _readable_span(self) -> ReadableSpan:
        plain = self._plain
        if plain is None:
            return super()._readable_span()
        own = self.__dict__
        own["_attributes"] = plain
        return ReadableSpan(
            self._name,
            self._context,
            self._parent,
            self._resource,
            plain,
            own.get("_events", ()),
            own.get("_links", ()),
            self._kind,
            self._instrumentation_info,
            self._status,
            self._start_time,
            self._end_time,
            self._instrumentation_scope,
        )
