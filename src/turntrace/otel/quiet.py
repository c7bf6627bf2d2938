"""At most one line a minute from the SDK's exporters when an endpoint is down."""

import logging
import time
from typing import Final

__all__ = ["OncePerMinute", "quieten"]

_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.grpc.metric_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http._common",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.metrics._internal.export",
)
_INTERVAL_S: Final = 60.0


class OncePerMinute(logging.Filter):
    """Lets one record through in each minute, over all loggers that share it."""

    def __init__(self) -> None:
        super().__init__()
        self._next_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether ``record`` is the first of its minute."""
        del record
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + _INTERVAL_S
        return True


def quieten() -> None:
    """Put one shared filter on the exporters' loggers; once."""
    once = OncePerMinute()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, OncePerMinute) for known in logger.filters):
            logger.addFilter(once)
