"""What a receiver says of itself as metrics; read when they are sent."""

from collections.abc import Callable

from opentelemetry.metrics import Meter

from turntrace.collect.counts import Totals
from turntrace.otel.live_metrics import observe

__all__ = ["observe_receiver"]


def observe_receiver(meter: Meter, totals: Callable[[], Totals]) -> None:
    """Make the instruments of one receiver, whose running totals ``totals`` says."""
    observe(meter, "turntrace.receiver.spans", lambda: [(totals().items.get("traces", 0), {})])
    observe(
        meter,
        "turntrace.receiver.rejected",
        lambda: [(amount, {"reason": reason}) for reason, amount in totals().rejected.items()],
    )
