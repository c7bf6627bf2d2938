"""Which requests of a client are model calls, and what becomes of their results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from opentelemetry.context import Context, get_current
from opentelemetry.instrumentation.utils import is_instrumentation_enabled
from opentelemetry.trace import get_current_span

from turntrace.core.attributes import REQUEST_STREAM, SERVER_ADDRESS
from turntrace.core.dialects import classify
from turntrace.core.ports import Recorder
from turntrace.instrument.adapters.answers import Answer
from turntrace.instrument.adapters.bodies import AsyncBody, Body
from turntrace.instrument.adapters.model_call import ModelCall
from turntrace.instrument.adapters.prefix import prefix_hashes
from turntrace.instrument.adapters.reading import Reading
from turntrace.otel import slot

__all__ = ["Api", "Calls"]

_UNKNOWN: Final = "unknown"
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Api:
    """An endpoint whose requests are model calls."""

    operation: str
    answer: Callable[[], Answer]


@dataclass(slots=True, kw_only=True)
class Calls:
    """The model calls of one SDK.

    ``apis`` by path. ``providers`` are parts of names of client classes with the provider behind them;
    the first that fits counts, then ``provider``. ``attempts``: attempts get spans of their own.
    """

    provider: str
    apis: Mapping[str, Api]
    providers: Sequence[tuple[str, str]] = ()
    attempts: bool = True
    is_on: bool = field(default=False)

    def begin(self, client: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> ModelCall | None:
        """The call that a request makes; None when it is none, or somebody else counts it."""
        recorder = slot.recorder
        if recorder is None or not self.is_on:
            return None
        try:
            return self._begin(recorder, client, _request_of(arguments, options), options)
        except Exception as error:  # noqa: BLE001 - telemetry never changes the agent
            recorder.caught("adapter", error)
            return None

    def answered(self, call: ModelCall, result: Any) -> None:
        """The request brought ``result``: a whole answer ends the call, another one is measured."""
        recorder = slot.recorder
        try:
            if not self._coming(call, result):
                call.end()
        except Exception as error:  # noqa: BLE001 - as above
            call.end()
            if recorder is not None:
                recorder.caught("adapter", error)

    def _begin(
        self, recorder: Recorder, client: Any, request: Any, options: Mapping[str, Any]
    ) -> ModelCall | None:
        api = self.apis.get(request.url.partition("?")[0]) if request.method.lower() == "post" else None
        if api is None or not is_instrumentation_enabled() or _is_counted(get_current()):
            return None
        attributes: dict[str, Any] = {SERVER_ADDRESS: client.base_url.host}
        if options.get("stream"):
            attributes[REQUEST_STREAM] = True
        body = request.json_data
        model = body.get("model") if isinstance(body, dict) else None
        name = type(client).__name__
        provider = next((found for part, found in self.providers if part in name), self.provider)
        call = ModelCall(
            recorder,
            api.answer(),
            model if isinstance(model, str) else _UNKNOWN,
            {"provider": provider, "operation": api.operation, "attributes": attributes},
        )
        call.counts_attempts = self.attempts
        if isinstance(body, dict):
            call.prefix = _prefix_of(body)
        return call

    def _coming(self, call: ModelCall, result: Any) -> bool:
        """Measure the rest of an answer; False when there is none."""
        opened = call.opened
        if opened is None:
            return False
        response = _response_of(result)
        if response is None:
            call.answer.whole(result)
            return False
        if call.is_stream:  # the headers of a whole answer come when the model is done: that is no connecting
            call.connected(response.status_code)
        if response.is_closed:
            if "json" in response.headers.get("content-type", ""):
                call.answer.whole(orjson.loads(response.content))
            return False
        reading = Reading(call, *opened, encoding=response.headers.get("content-encoding", ""))
        body = AsyncBody if hasattr(response.stream, "__aiter__") else Body
        if hasattr(result, "_iterator"):
            result._iterator = reading.events(result._iterator)  # noqa: SLF001 - both SDKs read through it
        response.stream = body(response.stream, reading)
        return True


def _request_of(arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The SDK's own record of the request: the second argument of its ``request``."""
    return options["options"] if "options" in options else arguments[1]


def _prefix_of(body: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The hashes of the prompt's parts; None where a part is no value of JSON."""
    try:
        return prefix_hashes(body)
    except TypeError:
        return None


def _response_of(result: Any) -> Any:
    """The HTTP response that ``result`` is, or reads from; None when it is a parsed answer."""
    if hasattr(result, "is_stream_consumed"):
        return result
    if hasattr(result, "_iterator"):
        return result.response
    return getattr(result, "http_response", None)


def _is_counted(context: Context) -> bool:
    """Whether the current span is that of a model call already, whoever made it."""
    span: Any = get_current_span(context)
    attributes = getattr(span, "attributes", None)
    if not attributes:
        return False
    scope = getattr(span, "instrumentation_scope", None)
    verdict = classify(scope.name if scope else "", span.name, "client", dict(attributes))
    return verdict.phase == "generation"
