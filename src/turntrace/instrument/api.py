"""The functions that applications call. Each tests one switch first: off, it costs next to nothing."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from turntrace.core.attributes import OPERATION, TOOL_CALL_ID, TOOL_NAME, TOOL_TYPE
from turntrace.core.contract import COUNTERS, MARKS, PHASES
from turntrace.core.ports import Recorder
from turntrace.instrument.decorators import wrapped
from turntrace.instrument.model_calls import GenerationSpan
from turntrace.instrument.noop import NOOP, Noop
from turntrace.instrument.spans import PhaseSpan
from turntrace.instrument.turns import TurnSpan
from turntrace.otel import slot

__all__ = ["count", "generation", "mark", "phase", "tool", "turn"]

Attributes = Mapping[str, str | bool | int | float]
Decorator = Callable[[Any], Any]


def _turn(
    agent: str, *, session_id: str | None = None, labels: Mapping[str, str] | None = None
) -> TurnSpan | Noop:
    """One user prompt until the agent hands control back; ``with`` or ``async with``.

    Args:
        agent: a name of low cardinality.
        session_id: the conversation the turn belongs to.
        labels: at most 8 content-free pairs of at most 64 characters.
    """
    recorder = slot.recorder
    return NOOP if recorder is None else TurnSpan(recorder, agent, session_id, labels)


def _phase(name: str, attributes: Attributes | None = None) -> PhaseSpan | Noop:
    """One phase of the current turn; a no-op outside a turn.

    Raises:
        ValueError: for a name that is not in the vocabulary, in strict mode only; otherwise it is
            recorded as ``other``, with a warning.
    """
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    if name not in PHASES:
        return _unknown(recorder, name, attributes)
    return PhaseSpan(recorder, name, name, attributes)


def _generation(
    *,
    model: str,
    provider: str | None = None,
    operation: str = "chat",
    attributes: Attributes | None = None,
) -> GenerationSpan | Noop:
    """One logical model call, its attempts and back-off included."""
    recorder = slot.recorder
    return NOOP if recorder is None else GenerationSpan(recorder, model, provider, operation, attributes)


def _tool(
    name: str, *, call_id: str | None = None, kind: str = "function", attributes: Attributes | None = None
) -> PhaseSpan | Noop:
    """One tool call; phases inside it (permission_wait, tool_queue, process_wait) are its children."""
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    own: dict[str, Any] = {OPERATION: "execute_tool", TOOL_NAME: name, TOOL_TYPE: kind}
    if call_id is not None:
        own[TOOL_CALL_ID] = call_id
    return PhaseSpan(recorder, "tool_execution", f"execute_tool {name}", {**own, **(attributes or {})})


def _unknown(recorder: Recorder, name: str, attributes: Attributes | None) -> PhaseSpan:
    if recorder.strict:
        raise ValueError(f"{name!r} is no phase; use one of {', '.join(PHASES)}")
    sink = recorder.sink(get_current())
    if sink is not None:
        sink.warn("unknown_phase", "a phase outside the vocabulary was recorded as other", None)
    return PhaseSpan(recorder, "other", "other", attributes)


def count(name: str, amount: int = 1) -> None:
    """Add to a counter of the current turn; nothing happens outside one.

    Raises:
        ValueError: for an unknown counter, in strict mode only.
    """
    recorder = slot.recorder
    if recorder is None or not _known(recorder, name, COUNTERS, "counter"):
        return
    sink = recorder.sink(get_current())
    if sink is not None:
        sink.count(name, amount)


def mark(name: str) -> None:
    """Note that a moment of the current turn came now; the first call of a name wins.

    Raises:
        ValueError: for an unknown mark, in strict mode only.
    """
    recorder = slot.recorder
    if recorder is None or not _known(recorder, name, MARKS, "mark"):
        return
    context = get_current()
    sink = recorder.sink(context)
    if sink is not None:
        current = get_current_span(context).get_span_context()
        sink.mark(name, sink.now_ns(), current.span_id if current.is_valid else None)


def _known(recorder: Recorder, name: str, names: frozenset[str], what: str) -> bool:
    if name in names:
        return True
    if recorder.strict:
        raise ValueError(f"{name!r} is no {what}; use one of {', '.join(sorted(names))}")
    sink = recorder.sink(get_current())
    if sink is not None:
        sink.warn(f"unknown_{what}", f"a {what} outside the vocabulary was left out", None)
    return False


class _TurnApi(Protocol):
    def __call__(
        self, agent: str, *, session_id: str | None = None, labels: Mapping[str, str] | None = None
    ) -> TurnSpan | Noop: ...
    def wrap(self, agent: str, *, session_id: str | None = None) -> Decorator: ...


class _PhaseApi(Protocol):
    def __call__(self, name: str, attributes: Attributes | None = None) -> PhaseSpan | Noop: ...
    def wrap(self, name: str, attributes: Attributes | None = None) -> Decorator: ...


class _GenerationApi(Protocol):
    def __call__(
        self,
        *,
        model: str,
        provider: str | None = None,
        operation: str = "chat",
        attributes: Attributes | None = None,
    ) -> GenerationSpan | Noop: ...
    def wrap(self, *, model: str, provider: str | None = None) -> Decorator: ...


class _ToolApi(Protocol):
    def __call__(
        self,
        name: str,
        *,
        call_id: str | None = None,
        kind: str = "function",
        attributes: Attributes | None = None,
    ) -> PhaseSpan | Noop: ...
    def wrap(self, name: str | None = None) -> Decorator: ...


def _wrap_with(make: Callable[..., Any]) -> Callable[..., Decorator]:
    """The decorator factory of ``make``: ``@phase.wrap("verification")``."""

    def wrap(*args: Any, **kwargs: Any) -> Decorator:
        return lambda function: wrapped(function, lambda: make(*args, **kwargs))

    return wrap


def _wrap_tool(name: str | None = None) -> Decorator:
    """``@tool.wrap()``: the function's own name unless one is given."""
    return lambda function: wrapped(function, lambda: _tool(name or function.__name__))


def _public(make: Callable[..., Any], name: str, wrap: Callable[..., Decorator]) -> Any:
    # A plain function with an attribute: calling an object with __call__ costs a third more.
    make.__name__ = make.__qualname__ = name
    make.__dict__["wrap"] = wrap
    return make


turn: Final = cast("_TurnApi", _public(_turn, "turn", _wrap_with(_turn)))
phase: Final = cast("_PhaseApi", _public(_phase, "phase", _wrap_with(_phase)))
generation: Final = cast("_GenerationApi", _public(_generation, "generation", _wrap_with(_generation)))
tool: Final = cast("_ToolApi", _public(_tool, "tool", _wrap_tool))
