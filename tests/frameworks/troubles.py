"""The second scenario: calls that go wrong or say little of what they cost, each in a turn of its own."""

from dataclasses import dataclass

from frameworks.steps import Step

__all__ = ["SESSIONS", "TROUBLES", "Trouble"]

SESSIONS = ("north", "east", "south")
"""The agents that run at the same time, in the third scenario."""

WORDS = "A quiet evening by the sea, and then the night."


@dataclass(frozen=True, slots=True)
class Trouble:
    """One call of the model.

    Args:
        name: What is asked.
        steps: What the server does, once for each attempt.
        stream: Whether the answer is streamed.
        leave_after: After how many pieces of text the caller leaves the stream.
    """

    name: str
    steps: tuple[Step, ...]
    stream: bool = True
    leave_after: int | None = None


def _stream(input_tokens: int, output_tokens: int, **fields: object) -> Step:
    chunked = {"text": WORDS, "chunks": 5, "ttft_s": 0.08, "gap_s": 0.03}
    return Step(**(chunked | {"input_tokens": input_tokens, "output_tokens": output_tokens} | fields))


def _whole(input_tokens: int, output_tokens: int, **fields: object) -> Step:
    return Step(text=WORDS, latency_s=0.05, input_tokens=input_tokens, output_tokens=output_tokens, **fields)


TROUBLES = (
    Trouble("keep-alive comments before the first word", (_stream(41, 11, keep_alive=4),)),
    Trouble("a stream without usage", (_stream(42, 12, usage="absent"),)),
    Trouble("a stream whose usage is null", (_stream(43, 13, usage="null"),)),
    Trouble("usage repeated on every piece", (_stream(44, 14, usage="cumulative"),)),
    Trouble("a stream that breaks", (_stream(45, 15, drop_after=2),)),
    Trouble("an error within a stream", (_stream(46, 16, error_after=2),)),
    Trouble("a caller that leaves", (_stream(47, 17),), leave_after=2),
    Trouble("usage that is null", (_whole(48, 18, usage="null"),), stream=False),
    Trouble(
        "an error and an overload before the answer",
        (
            Step(status=500, retry_after_s=0.03, text="broken"),
            Step(status=529, retry_after_s=0.03, text="overloaded"),
            _whole(49, 19, cached_tokens=32),
        ),
        stream=False,
    ),
    Trouble(
        "refused for good",
        (
            Step(status=429, retry_after_s=0.03, text="no"),
            Step(status=429, retry_after_s=0.03, text="no"),
            Step(status=429, retry_after_s=0.03, text="no", retried=False),
        ),
        stream=False,
    ),
    Trouble(
        "a connection dropped before the answer",
        (Step(drop_after=-1, retried=True), _whole(50, 20)),
        stream=False,
    ),
)
"""In the order in which an agent makes them; clients try three times at most."""
