"""Metrics that a command of ours sends of itself, to the endpoint that gets what it sends on."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource

from turntrace.config import Settings
from turntrace.core.attributes import METRICS
from turntrace.otel.exporters import metric_exporter
from turntrace.otel.quiet import quieten
from turntrace.version import VERSION

__all__ = ["SelfMetrics"]

_NONE: Final = frozenset({"none"})


class SelfMetrics:
    """``with SelfMetrics(endpoint, settings, service, measure):`` figures each interval, and the last at the end.

    An endpoint that does not answer costs the exit time-out at most. Without an endpoint, or where
    OTEL_METRICS_EXPORTER says none, nothing is measured.
    """

    def __init__(
        self,
        endpoint: str | None,
        settings: Settings,
        service: str,
        measure: Callable[[Meter], None],
    ) -> None:
        """``measure`` makes the instruments; ``service`` names the process where OTEL_SERVICE_NAME does not."""
        self._endpoint = endpoint
        self._settings = settings
        self._service = service
        self._measure = measure
        self._provider: MeterProvider | None = None

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            ConfigurationError: for a protocol that no official exporter speaks.
        """
        if self._endpoint is not None and self._settings.metrics_exporter != _NONE:
            quieten()
            reader = PeriodicExportingMetricReader(
                metric_exporter(self._settings, self._endpoint),
                export_interval_millis=self._settings.metric_interval_s * 1000,
            )
            named = {SERVICE_NAME: self._settings.service_name or self._service, METRICS: "process"}
            resource = Resource.create(named)
            self._provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
            self._measure(self._provider.get_meter("turntrace", VERSION))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._provider is not None:
            last = threading.Thread(target=self._provider.shutdown, name="turntrace-metrics", daemon=True)
            last.start()
            last.join(self._settings.exit_timeout_s)
