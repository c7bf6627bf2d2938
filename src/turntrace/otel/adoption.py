"""Does an application's own provider export over OTLP? Then turntrace must not export the same spans."""

from collections.abc import Iterator
from typing import Any

from opentelemetry.trace import TracerProvider

__all__ = ["exports_over_otlp"]


def exports_over_otlp(provider: TracerProvider) -> bool:
    """Whether a processor of ``provider`` holds an official OTLP exporter, however it is wrapped.

    The SDK has no public way to ask; where its attributes are named otherwise the answer is False.
    """
    processors = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    return any(
        type(part).__name__.startswith("OTLP") for processor in processors for part in _parts(processor)
    )


def _parts(processor: Any) -> Iterator[Any]:
    """The exporter of a processor, and what it wraps; at most a few steps."""
    batch = getattr(processor, "_batch_processor", None)
    part = getattr(processor, "span_exporter", None) or getattr(batch, "_exporter", None)
    for _ in range(4):
        if part is None:
            return
        yield part
        part = getattr(part, "_exporter", None)
