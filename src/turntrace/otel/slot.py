"""Where the API finds the processor: one slot and one context key. Loads no SDK.

``recorder`` is None until something is configured; the API is a no-op as long as it is.
"""

from typing import Final

from opentelemetry.context import create_key

from turntrace.core.ports import Recorder

__all__ = ["TURN_KEY", "clear", "fill", "recorder"]

TURN_KEY: Final = create_key("turntrace-turn")
"""The key under which a Context carries its turn (a TurnSink)."""

recorder: Recorder | None = None


def fill(processor: Recorder) -> None:
    """Switch the API on."""
    global recorder  # noqa: PLW0603 - the one switch that every disabled call tests
    recorder = processor


def clear(processor: Recorder) -> None:
    """Switch the API off if ``processor`` is the one in the slot."""
    global recorder  # noqa: PLW0603 - as fill
    if recorder is processor:
        recorder = None
