"""The functions that applications call. Each tests one switch first: off, it costs next to nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from turntrace.core.attributes import CALL_HASH, OPERATION, TOOL_CALL_ID, TOOL_NAME, TOOL_TYPE
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

_MAX_AMOUNT: Final = 2**62


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
    if recorder is None:
        return NOOP
    try:
        return TurnSpan(recorder, agent, session_id, labels)
    except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
        return _refused(recorder, "turn", error)


def _phase(name: str, attributes: Attributes | None = None) -> PhaseSpan | Noop:
    """One phase of the current turn; a no-op outside a turn.

    Raises:
        ValueError: for a name that is not in the vocabulary, in strict mode only; otherwise it is
            recorded as ``other``, with a warning.
    """
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    try:
        if name in PHASES:
            return PhaseSpan(recorder, name, name, attributes)
        return _unknown(recorder, name, attributes)
    except Exception as error:  # noqa: BLE001 - as above
        return _refused(recorder, "phase", error)


def _generation(
    *,
    model: str,
    provider: str | None = None,
    operation: str = "chat",
    attributes: Attributes | None = None,
) -> GenerationSpan | Noop:
    """One logical model call, its attempts and back-off included."""
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    try:
        return GenerationSpan(recorder, model, provider, operation, attributes)
    except Exception as error:  # noqa: BLE001 - as above
        return _refused(recorder, "generation", error)


def _tool(
    name: str, *, call_id: str | None = None, kind: str = "function", attributes: Attributes | None = None
) -> PhaseSpan | Noop:
    """One tool call; phases inside it (permission_wait, tool_queue, process_wait) are its children."""
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    try:
        name = str(name)
        own: dict[str, Any] = {OPERATION: "execute_tool", TOOL_NAME: name, TOOL_TYPE: kind}
        if call_id is not None:
            own[TOOL_CALL_ID] = call_id
        return PhaseSpan(recorder, "tool_execution", f"execute_tool {name}", {**own, **(attributes or {})})
    except Exception as error:  # noqa: BLE001 - as above
        return _refused(recorder, "tool", error)


def _unknown(recorder: Recorder, name: str, attributes: Attributes | None) -> PhaseSpan:
    if recorder.strict:
        raise ValueError(f"{name!r} is no phase; use one of {', '.join(PHASES)}")
    sink = recorder.sink(get_current())
    if sink is not None:
        sink.warn("unknown_phase", "a phase outside the vocabulary was recorded as other", None)
    return PhaseSpan(recorder, "other", "other", attributes)


def _refused(recorder: Recorder, where: str, error: Exception) -> Noop:
    """What a call gives whose arguments cannot be used: nothing, said once; in strict mode the error."""
    if recorder.strict:
        raise error
    recorder.caught(where, error)
    return NOOP


def count(name: str, amount: int = 1) -> None:
    """Add to a counter of the current turn; nothing happens outside one.

    Raises:
        ValueError: for an unknown counter or an amount that is no integer, in strict mode only.
    """
    recorder = slot.recorder
    if recorder is None:
        return
    try:
        _count(recorder, name, amount)
    except Exception as error:  # noqa: BLE001 - as above
        _refused(recorder, "count", error)


def _count(recorder: Recorder, name: str, amount: int) -> None:
    sink = recorder.sink(get_current())
    if not _known(recorder, name, COUNTERS, "counter") or sink is None:
        return
    given: object = amount
    if isinstance(given, int) and abs(given) <= _MAX_AMOUNT:
        sink.count(name, given)
    elif recorder.strict:
        raise ValueError(f"count({name!r}) takes an integer, not {amount!r}")
    else:
        sink.warn("count_invalid", f"an amount of {name} that is no integer was left out", None)


def mark(name: str) -> None:
    """Note that a moment of the current turn came now; the first call of a name wins.

    Raises:
        ValueError: for an unknown mark, in strict mode only.
    """
    recorder = slot.recorder
    if recorder is None:
        return
    try:
        _mark(recorder, name)
    except Exception as error:  # noqa: BLE001 - as above
        _refused(recorder, "mark", error)


def _mark(recorder: Recorder, name: str) -> None:
    context = get_current()
    sink = recorder.sink(context)
    if _known(recorder, name, MARKS, "mark") and sink is not None:
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
        return lambda function: wrapped(function, lambda _args, _kwargs: make(*args, **kwargs))

    return wrap


def _wrap_tool(name: str | None = None) -> Decorator:
    """``@tool.wrap()``: the function's own name unless one is given."""

    def wrap(function: Any) -> Any:
        called = name or function.__name__
        return wrapped(function, lambda args, kwargs: _stamped_tool(called, args, kwargs))

    return wrap


def _stamped_tool(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PhaseSpan | Noop:
    """A tool call that can be told from one with other arguments, and not by what they are."""
    recorder = slot.recorder
    if recorder is None:
        return NOOP
    # loaded with the first decorated call: hashing takes modules that recording does without
    from turntrace.instrument.stamps import call_stamp  # noqa: PLC0415 - see above

    try:
        found = call_stamp(str(name), args, kwargs)
    except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
        recorder.caught("tool", error)
        found = None
    return _tool(name, attributes=None if found is None else {CALL_HASH: found})


def _public(make: Callable[..., Any], name: str, wrap: Callable[..., Decorator]) -> Any:
    # A plain function with an attribute: calling an object with __call__ costs a third more.
    make.__name__ = make.__qualname__ = name
    make.__dict__["wrap"] = wrap
    return make


turn: Final = cast("_TurnApi", _public(_turn, "turn", _wrap_with(_turn)))
phase: Final = cast("_PhaseApi", _public(_phase, "phase", _wrap_with(_phase)))
generation: Final = cast("_GenerationApi", _public(_generation, "generation", _wrap_with(_generation)))
tool: Final = cast("_ToolApi", _public(_tool, "tool", _wrap_tool))
