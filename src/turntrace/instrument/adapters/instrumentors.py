"""The adapters as instrumentors of OpenTelemetry: started by ``turntrace run``, off until somebody asks."""

from collections.abc import Collection
from types import ModuleType
from typing import Any, ClassVar, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # that module switches mypy off for itself
from wrapt import register_post_import_hook

from turntrace.instrument.adapters.answers import ChatAnswer, MessageAnswer, ResponseAnswer
from turntrace.instrument.adapters.client_calls import Api, Calls
from turntrace.instrument.adapters.patches import ClientPatches

__all__ = ["AnthropicAdapter", "OpenAIAdapter"]


class _Adapter(BaseInstrumentor):  # type: ignore[misc]  # as above
    """Wraps an SDK's clients when the SDK is imported, which this does not do."""

    needs: ClassVar[str]
    module: ClassVar[str]
    calls: ClassVar[Calls]
    patches: ClassVar[ClientPatches]

    def instrumentation_dependencies(self) -> Collection[str]:
        """The versions of the SDK that this knows."""
        return (self.needs,)

    def _instrument(self, **options: Any) -> None:
        """``attempts=False``: somebody else makes spans of the HTTP requests."""
        self.calls.attempts = options.get("attempts", True)
        self.calls.is_on = True
        register_post_import_hook(self._imported, self.module)

    def _uninstrument(self, **options: Any) -> None:
        del options
        self.calls.is_on = False
        self.patches.undo()

    def _imported(self, module: ModuleType) -> None:
        if self.calls.is_on:
            self.patches.apply(module)


_OPENAI: Final = Calls(
    provider="openai",
    providers=(("Azure", "azure.ai.openai"),),
    apis={
        "/chat/completions": Api("chat", ChatAnswer),
        "/responses": Api("chat", ResponseAnswer),
        "/completions": Api("text_completion", ChatAnswer),
    },
)
_ANTHROPIC: Final = Calls(
    provider="anthropic",
    providers=(("Bedrock", "aws.bedrock"), ("Vertex", "gcp.vertex_ai")),
    apis={"/v1/messages": Api("chat", MessageAnswer)},
)


class OpenAIAdapter(_Adapter):
    """Spans of the calls of ``openai`` clients: chat completions, responses, completions."""

    needs = "openai >= 1.60"
    module = "openai._base_client"
    calls = _OPENAI
    patches = ClientPatches(_OPENAI)


class AnthropicAdapter(_Adapter):
    """Spans of the calls of ``anthropic`` clients that make none themselves: messages."""

    needs = "anthropic >= 0.50"
    module = "anthropic._base_client"
    calls = _ANTHROPIC
    patches = ClientPatches(_ANTHROPIC)
