"""A global tracer provider that gives way when the application sets one of its own.

API classes only. Until then spans go to the provider that turntrace built; from then on the
application's provider is the global one, our processor is added to it, and tracers handed out earlier
follow it. A remote parent (TRACEPARENT) becomes the parent of spans that have none, in every thread.
"""

from collections.abc import Callable, Iterator
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, Tracer, TracerProvider, get_current_span
from opentelemetry.util._decorator import _agnosticcontextmanager
from opentelemetry.util._once import Once

__all__ = ["DelegatingProvider", "install"]


class DelegatingProvider(TracerProvider):
    """Hands out tracers that follow ``target``; other attributes are the target's."""

    def __init__(self, target: TracerProvider, remote_parent: Context | None = None) -> None:
        self.target = target
        self.remote_parent = remote_parent
        self.generation = 0

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        """A tracer of the target, now and after it changes; arguments as the API's."""
        return _DelegatingTracer(self, args, kwargs)

    def follow(self, target: TracerProvider) -> None:
        """Send spans to ``target`` from now on."""
        self.target = target
        self.generation += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


class _DelegatingTracer(Tracer):
    def __init__(self, provider: DelegatingProvider, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._provider = provider
        self._arguments = (args, kwargs)
        self._generation = -1
        self._cached: Tracer

    @property
    def _tracer(self) -> Tracer:
        if self._generation != self._provider.generation:
            args, kwargs = self._arguments
            self._cached = self._provider.target.get_tracer(*args, **kwargs)
            self._generation = self._provider.generation
        return self._cached

    def _context(self, context: Context | None) -> Context | None:
        remote = self._provider.remote_parent
        if remote is None:
            return context
        current = get_current() if context is None else context
        if get_current_span(current).get_span_context().is_valid:
            return context
        return Context({**current, **remote})

    def start_span(self, name: str, context: Context | None = None, *args: Any, **kwargs: Any) -> Span:
        return self._tracer.start_span(name, self._context(context), *args, **kwargs)

    @_agnosticcontextmanager
    def start_as_current_span(
        self, name: str, context: Context | None = None, *args: Any, **kwargs: Any
    ) -> Iterator[Span]:
        with self._tracer.start_as_current_span(name, self._context(context), *args, **kwargs) as span:
            yield span


class _Yielding(Once):
    """The API's set-once, which lets the application's first set through and tells us of it."""

    def __init__(self, on_set: Callable[[], None]) -> None:
        super().__init__()
        self._on_set = on_set

    def do_once(self, func: Callable[[], None]) -> bool:
        did_set = super().do_once(func)
        if did_set:
            self._on_set()
        return did_set


def install(provider: DelegatingProvider, on_replaced: Callable[[TracerProvider], None]) -> None:
    """Make ``provider`` the global one without using up the application's right to set its own.

    The API allows one set and ignores the second with a warning, and has no public way to give way;
    its module state is replaced here and nowhere else.
    """

    def replaced() -> None:
        chosen = trace.get_tracer_provider()
        if chosen is not provider:
            on_replaced(chosen)

    trace._TRACER_PROVIDER = provider  # noqa: SLF001 - see the docstring
    trace._TRACER_PROVIDER_SET_ONCE = _Yielding(replaced)  # noqa: SLF001 - see the docstring
