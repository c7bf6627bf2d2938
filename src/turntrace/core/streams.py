"""What a stream of chunks costs: who waited for whom, when content first came, how it ended.

:class:`StreamRecorder` is fed with times and knows no clock. Time inside a pull is the provider's
(``await_ns``), time between two pulls is the consumer's (``consume_ns``); together they are the time
from the first pull to the end, to the nanosecond.
"""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from turntrace.core import outcomes
from turntrace.core.chunks import ContentKind
from turntrace.core.model import Outcome

__all__ = [
    "MAX_PAUSES",
    "NOT_IDLE",
    "PAUSE_NS",
    "Pause",
    "StreamListener",
    "StreamMark",
    "StreamProtocol",
    "StreamRecorder",
    "StreamSummary",
    "outcome_of",
    "stream_protocol",
]

Pause = tuple[int, int]
StreamProtocol = Literal["sync", "async", "both", "awaitable"]
StreamMark = Literal["first_chunk", "first_token", "first_visible"]

PAUSE_NS: Final = 20_000_000
"""A consumer's pause of this length or longer is kept with its times; shorter ones are only summed."""

MAX_PAUSES: Final = 256
"""How many pauses of one stream are kept."""

NOT_IDLE: Final = -(1 << 63)
"""``idle_since_ns`` outside a pause: before the first pull and inside each one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSummary:
    """What was measured. Times are absolute, of the recorder's clock; None means it never came.

    ``started_ns`` is the first pull (the end, when there was none). ``ended_ns`` is the end or, while
    ``outcome`` is ``incomplete``, the moment asked about. ``await_ns + consume_ns == ended_ns - started_ns`` holds always.
    """

    started_ns: int | None
    ended_ns: int
    first_chunk_ns: int | None
    first_token_ns: int | None
    first_visible_ns: int | None
    await_ns: int
    consume_ns: int
    chunks: int
    outcome: Outcome
    pauses: tuple[Pause, ...]


class StreamListener(Protocol):
    """Whoever wants to know about a stream while it runs; all times are of ``now_ns``.

    No method is called twice for the same thing, and none after ``finished``. What they raise is
    counted and kept from the caller. A stream that is dropped is finished by the garbage collector:
    in any thread, even one that holds a lock, so ``finished`` must not wait for a lock that other
    code of the same thread can hold.
    """

    def now_ns(self) -> int:
        """The time; read twice for each chunk, so a bare clock function serves best. Never raises."""
        ...

    def pause(self, start_ns: int, end_ns: int) -> None:
        """A pull ended a pause of PAUSE_NS or longer; called for the first MAX_PAUSES of them.

        The pause in which a stream is left is in the summary of ``finished`` only.
        """
        ...

    def first_chunk(self, at_ns: int) -> None:
        """The first item of any kind came."""
        ...

    def first_token(self, at_ns: int) -> None:
        """The first text, reasoning or tool-call content came."""
        ...

    def first_visible(self, at_ns: int) -> None:
        """The first text that a person would see came."""
        ...

    def finished(self, summary: StreamSummary) -> None:
        """The stream is over; called exactly once, whatever ended it."""
        ...


class StreamRecorder:
    """The measure of one stream, fed with the times of its pulls in nanoseconds.

    A wrapper calls :meth:`pull` before each pull, then :meth:`item` (or :meth:`idle` when the pull
    brought none), :meth:`look` while ``searching``, and :meth:`finish` once. On the hot path it may do
    the work of ``pull`` and ``item`` itself, on these attributes, as long as the pause is short.

    >>> recorder = StreamRecorder()
    >>> recorder.pull(0)
    >>> recorder.item(5)
    >>> recorder.look(5, "token")
    ('first_chunk', 'first_token')
    >>> recorder.pull(8)
    >>> summary = recorder.finish(10, "ok")
    >>> summary.await_ns, summary.consume_ns, summary.chunks
    (7, 3, 1)
    """

    __slots__ = (
        "_final",
        "_pauses",
        "chunks",
        "consume_ns",
        "first_chunk_ns",
        "first_token_ns",
        "first_visible_ns",
        "idle_since_ns",
        "searching",
        "started_ns",
    )

    def __init__(self) -> None:
        self.chunks = 0
        self.consume_ns = 0
        self.first_chunk_ns: int | None = None
        self.first_token_ns: int | None = None
        self.first_visible_ns: int | None = None
        self.idle_since_ns = NOT_IDLE
        self.searching = True
        self.started_ns: int | None = None
        self._pauses: list[Pause] = []
        self._final: StreamSummary | None = None

    @property
    def pulling(self) -> bool:
        """Whether a pull is under way."""
        return self.started_ns is not None and self.idle_since_ns == NOT_IDLE

    def pull(self, at_ns: int) -> Pause | None:
        """The long pause that this pull ends, if one is to be told.

        A pull that starts inside another one (two tasks on one stream) belongs to it.
        """
        pause = None
        since_ns = self.idle_since_ns
        if self.started_ns is None:
            self.started_ns = at_ns
        elif since_ns != NOT_IDLE:
            at_ns = max(at_ns, since_ns)
            self.consume_ns += at_ns - since_ns
            if at_ns - since_ns >= PAUSE_NS and len(self._pauses) < MAX_PAUSES:
                pause = (since_ns, at_ns)
                self._pauses.append(pause)
        self.idle_since_ns = NOT_IDLE
        return pause

    def idle(self, at_ns: int) -> None:
        """End the pull without an item: from now on the consumer has the time."""
        self.idle_since_ns = at_ns

    def item(self, at_ns: int) -> None:
        """End the pull with an item."""
        self.idle_since_ns = at_ns
        self.chunks += 1

    def look(self, at_ns: int, kind: ContentKind | None) -> tuple[StreamMark, ...]:
        """The marks that an item of this kind is the first to reach; visible text reaches all three."""
        reached: list[StreamMark] = []
        if self.first_chunk_ns is None:
            self.first_chunk_ns = at_ns
            reached.append("first_chunk")
        if kind is not None and self.first_token_ns is None:
            self.first_token_ns = at_ns
            reached.append("first_token")
        if kind == "visible" and self.first_visible_ns is None:
            self.first_visible_ns = at_ns
            self.searching = False
            reached.append("first_visible")
        return tuple(reached)

    def finish(self, at_ns: int, outcome: Outcome) -> StreamSummary:
        """The final summary; a pull that is under way ends now. A second call changes nothing."""
        if self._final is None:
            self.pull(at_ns)
            self.searching = False
            self._final = self._summary(at_ns, outcome)
        return self._final

    def summary(self, at_ns: int) -> StreamSummary:
        """The summary as of ``at_ns``, ``incomplete`` until the stream is finished."""
        return self._final or self._summary(at_ns, "incomplete")

    def _summary(self, at_ns: int, outcome: Outcome) -> StreamSummary:
        consume_ns = total_ns = 0
        if self.started_ns is not None:
            at_ns = max(at_ns, self.idle_since_ns, self.started_ns + self.consume_ns)
            idle_ns = 0 if self.idle_since_ns == NOT_IDLE else at_ns - self.idle_since_ns
            consume_ns = self.consume_ns + idle_ns
            total_ns = at_ns - self.started_ns
        return StreamSummary(
            started_ns=self.started_ns,
            ended_ns=at_ns,
            first_chunk_ns=self.first_chunk_ns,
            first_token_ns=self.first_token_ns,
            first_visible_ns=self.first_visible_ns,
            await_ns=total_ns - consume_ns,
            consume_ns=consume_ns,
            chunks=self.chunks,
            outcome=outcome,
            pauses=tuple(self._pauses),
        )


def outcome_of(error: BaseException) -> Outcome:
    """How a stream ended whose pull raised ``error``.

    >>> outcome_of(StopIteration()), outcome_of(KeyboardInterrupt()), outcome_of(OSError())
    ('ok', 'cancelled', 'error')
    """
    is_end = isinstance(error, StopIteration | StopAsyncIteration)
    return outcomes.outcome_of(None if is_end else type(error))


def stream_protocol(kind: type) -> StreamProtocol | None:
    """How objects of this type are iterated, None when neither they nor what they enter can be.

    >>> stream_protocol(list), stream_protocol(int)
    ('sync', None)
    """
    waits = hasattr(kind, "__aiter__") or hasattr(kind, "__anext__")
    awaitable = hasattr(kind, "__await__")  # a Future has __iter__ too
    if hasattr(kind, "__next__") or (hasattr(kind, "__iter__") and not awaitable):
        return "both" if waits else "sync"
    if waits or awaitable:
        return "async" if waits else "awaitable"
    if hasattr(kind, "__enter__"):
        return "sync"
    return "async" if hasattr(kind, "__aenter__") else None
