"""TRACEPARENT and TRACESTATE: out of the environment as a parent, into one for a child."""

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

__all__ = ["context_from", "headers_of"]


def context_from(traceparent: str | None, tracestate: str | None) -> Context | None:
    """A context whose current span is the remote one, or None without a valid ``traceparent``."""
    if not traceparent:
        return None
    carrier = {"traceparent": traceparent, **({"tracestate": tracestate} if tracestate else {})}
    context = TraceContextTextMapPropagator().extract(carrier, Context())
    return context if get_current_span(context).get_span_context().is_valid else None


def headers_of(context: Context | None = None) -> Mapping[str, str]:
    """TRACEPARENT (and TRACESTATE) of the current span; empty when there is none."""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, context)
    return {name.upper(): value for name, value in carrier.items()}
