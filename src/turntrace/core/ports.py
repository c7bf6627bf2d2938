"""What recording code needs of a live turn: the protocols that join the API to the processor."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from turntrace.core.attributes import Scalar
from turntrace.core.outcomes import Outcome, TurnStatus

__all__ = ["Recorder", "TurnSink"]


class TurnSink(Protocol):
    """A live turn. Every method is safe from any thread or task, returns at once and never raises."""

    run_id: str
    monotonic_ns: Callable[[], int]
    """The bare clock of the turn, for what reads it at every chunk; ``anchor_ns`` makes it epoch time."""
    anchor_ns: int

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the turn is over here; a closed one takes nothing more."""
        ...

    def now_ns(self) -> int:
        """The turn's clock: monotonic, anchored to the wall clock when the turn opened (epoch ns)."""
        ...

    def next_round(self) -> int:
        """Start a round and return its number, from 1."""
        ...

    def count(self, name: str, amount: int) -> None:
        """Add to a counter of the turn."""
        ...

    def mark(self, name: str, at_ns: int, span_id: int | None) -> None:
        """Note a moment; for the turn's own marks the first call wins."""
        ...

    def warn(self, code: str, message: str, span_id: int | None) -> None:
        """Add a warning to the turn."""
        ...

    def prefix(self, hashes: Mapping[str, str]) -> None:
        """Note the hashes of the parts of a model call's prompt: a ``prefix_hash`` line says what changed."""
        ...

    def finish(self, status: TurnStatus, end_ns: int) -> dict[str, Scalar]:
        """Freeze the turn and return the attributes of its span: the whole answer."""
        ...


class Recorder(Protocol):
    """What finds live turns: the processor, as the recording API sees it."""

    @property
    def strict(self) -> bool:
        """Whether unknown names are errors."""
        ...

    @property
    def tracer(self) -> Any:
        """The tracer (OpenTelemetry API) whose spans reach this recorder."""
        ...

    @property
    def out(self) -> str | None:
        """The absolute path of the trace file; None when there is no file."""
        ...

    def flush(self) -> None:
        """Write every journal line and every block that waits."""
        ...

    def sink(self, context: Any) -> TurnSink | None:
        """The live turn that ``context`` (an OpenTelemetry Context) lies in."""
        ...

    def begin(self, span: Any, context: Any, sink: Any, phase: str, attributes: Mapping[str, Any]) -> Any:
        """Enter a span of ours that was just started; its record, whose ``sink`` is its turn.

        With ``sink`` None it finds its turn, or opens one.
        """
        ...

    def end(self, opened: Any, end_ns: int, outcome: Outcome, attributes: Mapping[str, Any]) -> int:
        """Take a span of ours out of its turn, before it is ended; returns its exclusive time in ns."""
        ...

    def is_remote(self, context: Any) -> bool:
        """Whether the current span of ``context`` lives in another process, so that a fragment is due."""
        ...

    def homeless(self, name: str) -> None:
        """A span of ours had no turn: said in the live turns that it may belong to, and counted."""
        ...

    def record_of(self, sink: Any) -> Any:
        """The turn's record and attribution so far: a (Turn, Attribution) pair."""
        ...

    def caught(self, where: str, error: BaseException) -> None:
        """Note an error of turntrace itself; it never reaches the caller."""
        ...
