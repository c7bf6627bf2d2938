"""Sends the turns of a run on to an OTLP endpoint, enriched and without content, when the run has ended."""

import threading
from collections.abc import Sequence

from turntrace.config import Settings
from turntrace.core.attribution import attributed
from turntrace.core.model import Turn
from turntrace.errors import TurntraceError

__all__ = ["send_on"]


def send_on(
    turns: Sequence[Turn], endpoint: str | None, settings: Settings, *, keeps_content: bool, timeout_s: float
) -> tuple[str, ...]:
    """Send ``turns`` for at most ``timeout_s`` seconds; what a person must know of it.

    ``endpoint`` None goes where the OTEL_* variables say. The collector makes their metrics: the command was
    no service.
    """
    if not turns:
        return ()
    result: list[str] = ["the endpoint did not take the turn in time; send it later with: turntrace send"]

    def work() -> None:
        try:
            result[:] = (
                []
                if _sent(turns, endpoint, settings, keeps_content)
                else ["the endpoint did not take the turn; send it later with: turntrace send"]
            )
        except TurntraceError as error:
            result[:] = [f"the turn was not sent: {error}"]

    thread = threading.Thread(target=work, name="turntrace-send-on", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return tuple(result)


def _sent(turns: Sequence[Turn], endpoint: str | None, settings: Settings, keeps_content: bool) -> bool:
    from turntrace.otel.sender import Sender
    from turntrace.otel.turn_spans import resource_of, spans_of_turn

    sender = Sender(settings, endpoint, keeps_content=keeps_content)
    try:
        for turn in turns:
            service = settings.service_name or turn.agent or "turntrace"
            spans = list(spans_of_turn(turn, attributed(turn), resource_of(service, is_fresh=True)))
            if not sender.send_spans(spans):
                return False
    finally:
        sender.close()
    return True
