"""A live turn in this process: its clock, counters, live times and journal. Implements TurnSink."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

from turntrace.core.attributes import Scalar
from turntrace.core.live import LiveAttribution
from turntrace.core.model import Mark, Turn, TurnSource, TurnStatus, Usage, Warn
from turntrace.core.results import Attribution
from turntrace.otel.answer import LiveFacts, answer
from turntrace.otel.clock import Clock, TurnClock
from turntrace.otel.metrics import TurnMetrics
from turntrace.otel.open_span import OpenSpan
from turntrace.otel.turn_log import TurnLog

__all__ = ["LiveTurn", "NestedTurn"]

_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class LiveTurn:
    """One turn that is being recorded; or, while ``candidate``, a local root that may become one."""

    __slots__ = (
        "anchor_ns",
        "_first_ns",
        "monotonic_ns",
        "_tokens",
        "agent",
        "candidate",
        "closed",
        "clock",
        "counters",
        "detached",
        "end_ns",
        "generations",
        "has_phase",
        "is_remote",
        "labels",
        "live",
        "lock",
        "log",
        "metrics",
        "model",
        "open_spans",
                "provider",
        "reports",
        "result",
        "root_id",
        "root_name",
        "rounds",
        "run_id",
        "sampled",
        "session_id",
        "source",
        "span_count",
        "start_ns",
        "status",
        "tool_calls",
        "tools_open",
        "tools_open_most",
        "trace_id",
        "turn_source",
    )

    def __init__(  # noqa: PLR0913 - one record, made in one place
        self,
        *,
        clock: Clock,
        run_id: str,
        trace_id: int,
        root_id: int,
        root_name: str,
        turn_source: TurnSource,
    ) -> None:
        self.run_id = run_id
        self.trace_id = trace_id
        self.root_id = root_id
        self.root_name = root_name
        self.turn_source = turn_source
        self.candidate = turn_source == "local_root"
        self.is_remote = False
        self.result: tuple[Turn, Attribution] | None = None
        self.clock = TurnClock(clock)
        self.monotonic_ns, self.anchor_ns = clock.monotonic_ns, self.clock.anchor_ns
        self.lock = threading.Lock()
        self.metrics: TurnMetrics | None = None
        self.source = "native"
        self.labels: Mapping[str, str] = {}
        self.agent: str | None = None
        self.model: str | None = None
        self.provider: str | None = None
        self.session_id = ""
        self.sampled = True
        self.start_ns = 0
        self.end_ns: int | None = None
        self.status: TurnStatus = "ok"
        self.rounds = 0
        self.counters: Counter[str] = Counter()
        self.live: LiveAttribution
        self.log: TurnLog
        self.open_spans: dict[int, OpenSpan] = {}
        self.span_count = 0
        self.has_phase = False
        self.closed = False
        self.detached = False
        self.generations = 0
        self.reports = 0
        self.tool_calls = 0
        self.tools_open = 0
        self.tools_open_most = 0
        self._first_ns: dict[str, int] = {}
        self._tokens: dict[str, int | None] = dict.fromkeys(_TOKENS, 0)

    @property
    def turn(self) -> "LiveTurn":
        """Itself: a nested turn answers with the outer one."""
        return self

    # -- TurnSink -----------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """See TurnSink."""
        return self.monotonic_ns() + self.anchor_ns

    def next_round(self) -> int:
        """See TurnSink."""
        self.rounds += 1
        return self.rounds

    def count(self, name: str, amount: int) -> None:
        """See TurnSink."""
        if self.closed:
            return
        with self.lock:
            self.counters[name] += amount
            total = self.counters[name]
        self.log.counter(name, total)
        if self.metrics is not None:
            self.metrics.counted(name, amount, self.agent, self.model)

    def mark(self, name: str, at_ns: int, span_id: int | None) -> None:
        """See TurnSink."""
        if self.closed:
            return
        with self.lock:
            self._first_ns.setdefault(name, at_ns)
        self.log.mark(Mark(name=name, at_ns=at_ns, span_id=None if span_id is None else f"{span_id:016x}"))

    def warn(self, code: str, message: str, span_id: int | None) -> None:
        """See TurnSink."""
        ids = () if span_id is None else (f"{span_id:016x}",)
        self.log.warning(Warn(code=code, message=message, span_ids=ids))

    def finish(self, status: TurnStatus, end_ns: int) -> dict[str, Scalar]:
        """See TurnSink."""
        if self.closed:
            return {}
        with self.lock:
            if self.end_ns is None:
                self.status = status
                self.end_ns = end_ns
            return answer(self.live.totals(self.end_ns), self.facts())

    # -- what the processor tells ---------------------------------------------------------------------

    def first_ns(self, name: str) -> int | None:
        """When the moment ``name`` first came (epoch ns)."""
        return self._first_ns.get(name)

    def called(self, model: str | None, provider: str | None, usage: Usage | None) -> None:
        """Note one model call and what it consumed; a total with an unknown part is unknown."""
        with self.lock:
            self.model = self.model or model
            self.provider = self.provider or provider
            self.generations += 1
            self.reports += usage is not None and usage.provenance == "reported"
            for name in _TOKENS:
                value: int | None = getattr(usage, name, None)
                total = self._tokens[name]
                self._tokens[name] = None if total is None or value is None else total + value

    def facts(self) -> LiveFacts:
        """Counts and tokens so far."""
        first = self._first_ns.get("first_token")
        return LiveFacts(
            run_id=self.run_id,
            status=self.status,
            rounds=self.rounds,
            model_requests=self.generations,
            tool_calls=self.tool_calls,
            retries=self.counters["retry_count"],
            compactions=self.counters["compaction_count"],
            usage_complete=self.reports == self.generations if self.generations else None,
            tokens=self._tokens if self.generations else {},
            first_token_ns=None if first is None else first - self.start_ns,
            max_tools_at_once=self.tools_open_most,
            detached=self.detached,
        )


class NestedTurn:
    """A turn() inside a turn: structure of the outer one, with rounds of its own."""

    __slots__ = ("anchor_ns", "monotonic_ns", "outer", "rounds", "run_id", "turn")

    def __init__(self, outer: LiveTurn, run_id: str) -> None:
        self.outer = self.turn = outer
        self.monotonic_ns, self.anchor_ns = outer.monotonic_ns, outer.anchor_ns
        self.run_id = run_id
        self.rounds = 0

    @property
    def root_id(self) -> int:
        """No span is the root of a block through a nested turn."""
        return -1

    @property
    def candidate(self) -> bool:
        """A nested turn lies in a turn, never in a mere local root."""
        return False

    @property
    def closed(self) -> bool:
        """Whether the outer turn is closed."""
        return self.outer.closed

    def now_ns(self) -> int:
        """See TurnSink."""
        return self.outer.now_ns()

    def next_round(self) -> int:
        """See TurnSink."""
        self.rounds += 1
        return self.rounds

    def count(self, name: str, amount: int) -> None:
        """See TurnSink."""
        self.outer.count(name, amount)

    def mark(self, name: str, at_ns: int, span_id: int | None) -> None:
        """See TurnSink."""
        self.outer.mark(name, at_ns, span_id)

    def warn(self, code: str, message: str, span_id: int | None) -> None:
        """See TurnSink."""
        self.outer.warn(code, message, span_id)

    def finish(self, status: TurnStatus, end_ns: int) -> dict[str, Scalar]:
        """Only the outer turn carries the whole answer."""
        del status, end_ns
        return {}
