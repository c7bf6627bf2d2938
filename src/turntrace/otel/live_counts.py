"""What a live turn counts: calls, retries, tokens, tools at once, first moments. No lock of its own."""

from collections import Counter
from typing import Final

from turntrace.core.model import TurnStatus, Usage
from turntrace.otel.answer import LiveFacts

__all__ = ["LiveCounts"]

_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class LiveCounts:
    """Running counts of one turn; whoever changes them holds the turn's lock."""

    __slots__ = (
        "_reports", "_tokens", "counters", "detached", "first_ns", "model_requests", "retry_waits", "rounds",
        "tool_calls", "tools_open", "tools_open_most",
    )  # fmt: skip

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.rounds = 0
        self.model_requests = 0
        self.tool_calls = 0
        self.tools_open = 0
        self.tools_open_most = 0
        self.retry_waits = 0
        self.detached = False
        self.first_ns: dict[str, int] = {}
        self._reports = 0
        self._tokens: dict[str, int | None] = dict.fromkeys(_TOKENS, 0)

    def tool_opened(self) -> None:
        """A tool call began."""
        self.tools_open += 1
        self.tools_open_most = max(self.tools_open_most, self.tools_open)

    def tool_closed(self) -> None:
        """A tool call ended."""
        self.tools_open -= 1
        self.tool_calls += 1

    def model_called(self, usage: Usage | None) -> None:
        """A model call ended; a total with an unknown part is unknown."""
        self.model_requests += 1
        self._reports += usage is not None and usage.provenance == "reported"
        for name in _TOKENS:
            value: int | None = getattr(usage, name, None)
            total = self._tokens[name]
            self._tokens[name] = None if total is None or value is None else total + value

    def facts(self, run_id: str, status: TurnStatus, start_ns: int) -> LiveFacts:
        """The counts so far, for the turn's span."""
        first = self.first_ns.get("first_token")
        calls = self.model_requests
        return LiveFacts(
            run_id=run_id,
            status=status,
            rounds=self.rounds,
            model_requests=calls,
            tool_calls=self.tool_calls,
            retries=self.counters["retry_count"],
            compactions=self.counters["compaction_count"],
            usage_complete=self._reports == calls if calls else None,
            tokens=self._tokens if calls else {},
            first_token_ns=None if first is None else first - start_ns,
            max_tools_at_once=self.tools_open_most,
            detached=self.detached,
            counters=self.counters,
        )
