"""The methods of a client through which every model call passes, and the wrappers around them.

``request`` is one logical call with all its attempts; the back-off between two of them and the making
of a stream have methods of their own. Each is replaced on its class and can be put back.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, Final

from turntrace.instrument.adapters.bodies import reading_of
from turntrace.instrument.adapters.client_calls import Calls
from turntrace.instrument.adapters.model_call import current_call

__all__ = ["ClientPatches"]

Method = Callable[..., Any]


class ClientPatches:
    """What is replaced in one SDK; ``apply`` and ``undo`` as often as you like."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._replaced: list[tuple[type, str, Method, Method]] = []

    def apply(self, module: ModuleType) -> None:
        """Wrap the methods of the clients and streams that ``module`` (the SDK's ``_base_client``) has."""
        if self._replaced:
            return
        for name, owners, wrapper in _WRAPPERS:
            for owner in owners:
                kind: Any = vars(module).get(owner)
                original = None if kind is None else vars(kind).get(name)
                if original is not None:
                    replacement = wrapper(original, self._calls)
                    setattr(kind, name, replacement)
                    self._replaced.append((kind, name, original, replacement))

    def undo(self) -> None:
        """Put the methods back, except one that somebody wrapped after us; that passes through."""
        for kind, name, original, replacement in reversed(self._replaced):
            if vars(kind).get(name) is replacement:
                setattr(kind, name, original)
        self._replaced.clear()


def _request(original: Method, calls: Calls) -> Method:
    @wraps(original)
    def request(client: Any, *arguments: Any, **options: Any) -> Any:
        call = calls.begin(client, arguments, options)
        if call is None:
            return original(client, *arguments, **options)
        with call:
            result = original(client, *arguments, **options)
        calls.answered(call, result)
        return result

    return request


def _async_request(original: Method, calls: Calls) -> Method:
    @wraps(original)
    async def request(client: Any, *arguments: Any, **options: Any) -> Any:
        call = calls.begin(client, arguments, options)
        if call is None:
            return await original(client, *arguments, **options)
        with call:
            result = await original(client, *arguments, **options)
        calls.answered(call, result)
        return result

    return request


def _wait(original: Method, _: Calls) -> Method:
    @wraps(original)
    def wait(client: Any, *arguments: Any, **options: Any) -> Any:
        call = current_call()
        if call is None:
            return original(client, *arguments, **options)
        with call.waiting(options.get("response")):
            return original(client, *arguments, **options)

    return wait


def _async_wait(original: Method, _: Calls) -> Method:
    @wraps(original)
    async def wait(client: Any, *arguments: Any, **options: Any) -> Any:
        call = current_call()
        if call is None:
            return await original(client, *arguments, **options)
        with call.waiting(options.get("response")):
            return await original(client, *arguments, **options)

    return wait


def _made(original: Method, _: Calls) -> Method:
    """A stream that is made of a response which is measured already is read through that."""

    @wraps(original)
    def made(stream: Any, *arguments: Any, **options: Any) -> None:
        original(stream, *arguments, **options)
        reading = reading_of(stream.__dict__.get("response"))
        if reading is not None and hasattr(stream, "_iterator"):
            stream._iterator = reading.events(stream._iterator)  # noqa: SLF001 - both SDKs read through it

    return made


_SYNC: Final = ("SyncAPIClient",)
_ASYNC: Final = ("AsyncAPIClient",)
_WRAPPERS: Final = (
    ("request", _SYNC, _request),
    ("request", _ASYNC, _async_request),
    ("_sleep_for_retry", _SYNC, _wait),
    ("_sleep_for_retry", _ASYNC, _async_wait),
    ("__init__", ("Stream", "AsyncStream"), _made),
)
