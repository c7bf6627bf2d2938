"""``generation()``: one logical model call, all its attempts included."""

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Span, SpanKind

from turntrace.core import attributes as names
from turntrace.core.outcomes import Outcome, outcome_of
from turntrace.core.ports import Recorder, TurnSink
from turntrace.instrument.spans import PhaseSpan

if TYPE_CHECKING:
    from turntrace.core.streams import StreamSummary
    from turntrace.instrument.meter import Meter

__all__ = ["GenerationSpan", "GenerationStream"]

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_TOKENS: Final = {
    "input_tokens": names.INPUT_TOKENS,
    "output_tokens": names.OUTPUT_TOKENS,
    "cached_input_tokens": names.CACHE_READ_TOKENS,
    "cache_write_tokens": names.CACHE_WRITE_TOKENS,
    "reasoning_tokens": names.REASONING_TOKENS,
}


class GenerationSpan(PhaseSpan):
    """A model call. ``stream()`` times its items, ``usage()`` says what it consumed."""

    __slots__ = ("__weakref__", "_meters", "_streams")

    def __init__(
        self,
        recorder: Recorder,
        model: str,
        provider: str | None,
        operation: str,
        attributes: Mapping[str, Any] | None,
    ) -> None:
        own: dict[str, Any] = {names.OPERATION: operation, names.REQUEST_MODEL: model}
        if provider is not None:
            own[names.PROVIDER] = provider
        super().__init__(
            recorder, "generation", f"{operation} {model}", {**own, **(attributes or {})}, SpanKind.CLIENT
        )
        self._streams: list[GenerationStream] = []
        self._meters: list[weakref.ref[Meter]] = []

    def usage(self, **tokens: int | None) -> None:
        """Say what the call consumed; None is unknown, 0 is zero.

        Args:
            tokens: ``input_tokens`` (cache reads and writes included), ``output_tokens`` (reasoning
                included), ``cached_input_tokens``, ``cache_write_tokens``, ``reasoning_tokens``.

        Raises:
            TypeError: for any other name, in strict mode only.
        """
        for name, value in tokens.items():
            if name not in _TOKENS:
                if self._recorder.strict:
                    raise TypeError(f"usage() has no {name!r}; it takes {', '.join(_TOKENS)}")
            elif isinstance(value, int):
                self.set(_TOKENS[name], value)

    def finish_reasons(self, *reasons: str) -> None:
        """Say why the model stopped."""
        if self._span is not None:
            self._span.set_attribute(names.FINISH_REASONS, reasons)
            self._attributes[names.FINISH_REASONS] = reasons

    def stream(self, source: Any) -> Any:
        """``source`` with its items timed; sync or async, everything else about it unchanged."""
        span, sink = self._span, self._sink
        if span is None or sink is None:
            return source
        try:
            return self._traced(source, span, sink)
        except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
            self._recorder.caught("stream", error)
            return source

    def _traced(self, source: Any, span: Span, sink: TurnSink) -> Any:
        # loaded with the first stream: reading chunks needs a JSON parser, recording does not
        from turntrace.instrument.streams import stream as traced  # noqa: PLC0415 - see above

        self.set(names.REQUEST_STREAM, value=True)
        listener = GenerationStream(self, span, sink)
        proxy = traced(source, listener)
        self._streams.append(listener)
        self._meters.append(weakref.ref(proxy.turntrace_meter))
        return proxy

    def paused(self, start_ns: int, end_ns: int) -> None:
        """The caller paused between two items: a span of its own, outside the generation's time."""
        if self._span is None or self._sink is None:
            return
        attributes = {names.PHASE: "stream_consume", names.OUTCOME: "ok", names.ROUND: self._sink.rounds or 1}
        recorder = self._recorder
        span: Span = recorder.tracer.start_span(
            "stream_consume", self._attached, SpanKind.INTERNAL, attributes, start_time=start_ns
        )
        opened = recorder.begin(span, self._attached, self._sink, "stream_consume", attributes)
        exclusive_ns = recorder.end(opened, end_ns, "ok", {})
        span.set_attribute(names.EXCLUSIVE_MS, exclusive_ns / _NS_PER_MS)
        span.end(end_ns)

    def _close(self, kind: type[BaseException] | None) -> None:
        for meter in self._meters:
            running = meter()
            if running is not None:
                running.finish(outcome_of(kind) if kind is not None else "abandoned")
        super()._close(kind)

    def _ending(self, span: Span, sink: TurnSink, end_ns: int, outcome: Outcome) -> Outcome:
        del sink, end_ns
        self._span = span  # once more, for set()
        for stream in self._streams:
            for name, value in stream.measured():
                self.set(name, value)
            if outcome == "ok":
                outcome = stream.outcome
        if outcome != "ok":
            span.set_attribute(names.OUTCOME, outcome)
        self._span = None
        return outcome

    def _round(self, sink: TurnSink) -> int:
        return sink.next_round()


class GenerationStream:
    """Hears of one stream (a StreamListener) and tells the generation's span when that ends.

    A dropped stream is finished by the garbage collector, in any thread and with any lock held: what
    comes then is only kept.
    """

    __slots__ = (
        "_anchor_ns",
        "_generation",
        "_marks",
        "_sink",
        "_span_id",
        "_started_ns",
        "_summary",
        "now_ns",
    )

    def __init__(self, generation: GenerationSpan, span: Span, sink: TurnSink) -> None:
        self.now_ns = sink.monotonic_ns
        self._anchor_ns = sink.anchor_ns
        self._generation = weakref.ref(generation)
        self._sink = sink
        self._span_id = span.get_span_context().span_id
        self._started_ns = getattr(span, "start_time", None) or sink.now_ns()
        self._marks: dict[str, int] = {}
        self._summary: StreamSummary | None = None

    def first_chunk(self, at_ns: int) -> None:
        """The first item of any kind came."""
        self._mark("first_chunk", at_ns)

    def first_token(self, at_ns: int) -> None:
        """The first text, reasoning or tool-call content came."""
        self._mark("first_token", at_ns)

    def first_visible(self, at_ns: int) -> None:
        """The first text that a person would see came."""
        self._mark("first_visible", at_ns)

    def pause(self, start_ns: int, end_ns: int) -> None:
        """A pull ended a long pause of the caller."""
        generation = self._generation()
        if generation is not None:
            generation.paused(start_ns + self._anchor_ns, end_ns + self._anchor_ns)

    def finished(self, summary: "StreamSummary") -> None:
        """The stream is over."""
        self._summary = summary

    def _mark(self, name: str, at_ns: int) -> None:
        self._marks[name] = at_ns + self._anchor_ns - self._started_ns
        self._sink.mark(name, at_ns + self._anchor_ns, self._span_id)

    @property
    def outcome(self) -> Outcome:
        """How the stream ended; a stream that nobody pulled from ended well."""
        return "ok" if self._summary is None else self._summary.outcome

    def measured(self) -> Iterator[tuple[str, float]]:
        """The attributes that the stream gives: seconds for the conventions' name, ms for ours."""
        for name, (attribute, unit_ns) in _MOMENTS.items():
            if name in self._marks:
                yield attribute, self._marks[name] / unit_ns
        summary = self._summary
        if summary is not None:
            yield names.AWAIT_MS, summary.await_ns / _NS_PER_MS
            yield names.CONSUME_MS, summary.consume_ns / _NS_PER_MS
            yield names.CHUNKS, summary.chunks


_MOMENTS: Final = {
    "first_chunk": (names.TIME_TO_FIRST_CHUNK, _NS_PER_S),
    "first_token": (names.FIRST_TOKEN_MS, _NS_PER_MS),
    "first_visible": (names.FIRST_VISIBLE_MS, _NS_PER_MS),
}
