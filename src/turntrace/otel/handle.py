"""What configure() and attach() return."""

from collections.abc import Callable
from pathlib import Path

from turntrace.otel.processor import TurnSpanProcessor

__all__ = ["Handle"]


class Handle:
    """Flush and shut down what was set up. ``trace`` is the file, ``decision`` says who exports what.

    A handle that records nothing (TURNTRACE_DISABLED, OTEL_SDK_DISABLED) has no processor.
    """

    def __init__(
        self,
        processor: TurnSpanProcessor | None,
        *,
        trace: Path | None = None,
        decision: str = "",
        on_shutdown: Callable[[], None] = lambda: None,
        on_flush: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.processor = processor
        self.trace = trace
        self.decision = decision
        self._on_shutdown = on_shutdown
        self._on_flush = on_flush

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Write every journal line, export every ended span and metric; False when it took longer."""
        timeout_ms = int(timeout_s * 1000)
        flushed = self.processor is None or self.processor.force_flush(timeout_ms)
        return self._on_flush(timeout_ms) and flushed

    @property
    def dropped(self) -> dict[str, int]:
        """How many records were left out so far, by reason; spans that reached no endpoint are in the file."""
        return {} if self.processor is None else dict(self.processor.recording.guard.dropped)

    def shutdown(self) -> None:
        """Close live turns as interrupted, write the file, give exporters their bounded time; once."""
        on_shutdown, self._on_shutdown = self._on_shutdown, lambda: None
        on_shutdown()
