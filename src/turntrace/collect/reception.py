"""What one command sends while it runs: a private receiver, its files, and what is passed on."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

from turntrace.collect.acceptance import RawRequest
from turntrace.collect.access import new_token
from turntrace.collect.pass_on import PassOn
from turntrace.collect.preparation import Prepared, prepared
from turntrace.collect.presets import Preset
from turntrace.collect.receiver import Receiver, Settings
from turntrace.collect.sink import ContentKind, RequestFiles, Signal, Sink

__all__ = ["Reception"]

_LOOK_S: Final = 0.02
_QUIET_S: Final = 0.25
"""Exporters that are still sending when their process has ended do so without such a pause."""

_NOTHING_YET_S: Final = 0.1
_STOP_S: Final = 1.0


class _Patient:
    """A sink that takes what the disk does not: the command must not retry, log or wait because of us.

    ``lost`` counts requests, ``why`` is the last error.
    """

    __slots__ = ("_sink", "lost", "why")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.lost = 0
        self.why = ""

    def take(self, signal: Signal, body: bytes, kind: ContentKind) -> None:
        """See Sink; nothing is raised."""
        try:
            self._sink.take(signal, body, kind)
        except OSError as error:
            self.lost += 1
            self.why = error.strerror or str(error)


class Reception:
    """``with Reception(preset, argv, env, folder) as reception``: the command is ``reception.prepared``.

    Requests are kept in ``folder`` as they came, so that what was acknowledged survives everybody's death.
    """

    __slots__ = ("_folder", "_passing", "_preset", "_receiver", "_sink", "_stack", "_started", "prepared")

    def __init__(
        self,
        preset: Preset,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        configuration: str = "",
    ) -> None:
        """Say how the command is to be started once the receiver listens.

        Args:
            preset: what switches on the telemetry of the command.
            argv: the command.
            environment: its variables.
            folder: where the requests go; made when it is not there.
            configuration: the text of the agent's own configuration file.
        """
        self._preset = preset
        self._folder = folder
        self._started = argv, environment, configuration
        self._stack = ExitStack()
        self._receiver: Receiver | None = None
        self._sink: _Patient | None = None
        self._passing: PassOn | None = None
        self.prepared = Prepared(argv=tuple(argv), environment=environment)

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            ConfigurationError: when no port can be had.
            MissingExtraError: without the extra `collect`.
            OSError: when the folder cannot be made.
        """
        argv, environment, configuration = self._started
        token = new_token()
        with ExitStack() as stack:
            files = stack.enter_context(RequestFiles(self._folder))
            self._sink = _Patient(files)
            receiver = Receiver(self._sink, Settings(token=token), hook=self._pass_on)
            stack.enter_context(receiver)
            self.prepared = prepared(
                self._preset, argv, environment, receiver.http_endpoint, token, configuration=configuration
            )
            if self.prepared.forward is not None:
                self._passing = stack.enter_context(PassOn(self.prepared.forward, token))
            self._receiver = receiver
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _pass_on(self, request: RawRequest) -> None:
        if self._passing is not None:
            self._passing(request)

    @property
    def requests(self) -> int:
        """How many requests were accepted so far."""
        return 0 if self._receiver is None else sum(self._receiver.totals.requests.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person must know of what came, one line each."""
        said: list[str] = []
        if not self.requests and self._preset.commands:
            said.append(f"{self._preset.name} sent no telemetry: {self._preset.hint}")
        rejected = {} if self._receiver is None else self._receiver.totals.rejected
        if rejected:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(rejected.items()))
            said.append(f"requests refused: {reasons}")
        if self._sink is not None and self._sink.lost:
            said.append(f"{self._sink.lost} requests could not be kept: {self._sink.why}")
        if self._passing is not None and self._passing.lost:
            said.append(f"{self._passing.lost} requests could not be passed on to {self._passing.hosts}")
        return tuple(said)

    def settle(self, timeout_s: float) -> None:
        """Wait for what is still being sent: until a pause, for at most ``timeout_s``; then listen no more.

        A command that was not expected to send anything, and has not, is hardly waited for. A Ctrl-C ends the
        waiting: what came until then is to be written all the same.
        """
        with suppress(KeyboardInterrupt):
            self._wait(timeout_s)
        if self._receiver is not None:
            self._receiver.stop(_STOP_S)
        if self._passing is not None:
            self._passing.stop(timeout_s)

    def _wait(self, timeout_s: float) -> None:
        started_s = last_s = time.monotonic()
        seen = self.requests
        is_known = bool(self._preset.commands)
        while (now_s := time.monotonic()) - started_s < timeout_s:
            if self.requests != seen:
                seen, last_s = self.requests, now_s
            pause_s = _QUIET_S if seen else timeout_s if is_known else _NOTHING_YET_S
            if now_s - last_s >= pause_s:
                break
            time.sleep(_LOOK_S)
