"""``turntrace send``: an offline file to an OTLP endpoint."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Annotated, Any, Final, Self

import typer

from turntrace.cli.output import UsageError, say, show_lines, write
from turntrace.cli.selection import newest_path, nothing_in
from turntrace.config import Settings
from turntrace.core.attribution import attributed
from turntrace.core.model import Turn
from turntrace.files.read import read_paths
from turntrace.otel.destination import Destination, destination
from turntrace.otel.probe import is_listening
from turntrace.report.json_report import dumped
from turntrace.report.rounding import count_text
from turntrace.report.strings import printable

__all__ = ["register", "send"]

_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_BATCH_SPANS: Final = 512
_LONG_SPANS: Final = 5_000
_FAILED_STATUS: Final = 1


def send(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Traces; the newest if unset.")
    ] = None,
    *,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            "--otlp-endpoint",
            metavar="URL",
            help="Where to; else as OTEL_EXPORTER_OTLP_ENDPOINT says.",
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option("--service", metavar="NAME", help="The service's name there; the agent's if unset."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was sent, as JSON.")] = False,
) -> None:
    """Send turns that were recorded to a file to an OTLP endpoint: Jaeger, Tempo, a collector.

    Ids, parents and times are kept, so that a trace sent twice is one trace. The official exporters send, by the
    OTEL_EXPORTER_OTLP_* variables. Attributes are filtered as they are everywhere.

    Exit status 1 when the endpoint did not take everything, 2 when a file cannot be read.

    For example:

        turntrace send run.ndjson
        turntrace send *.ndjson --endpoint http://localhost:4317
        turntrace send --json
    """
    settings = Settings.from_env()
    where = destination(endpoint or settings.endpoint or _DEFAULT_ENDPOINT, settings)
    if where is None:
        raise UsageError("OTEL_TRACES_EXPORTER names no OTLP exporter; give --endpoint URL")
    paths = files or [newest_path()]
    turns = {path: _outermost(path) for path in paths}
    if not is_listening(where.endpoint):
        raise UsageError(f"nothing listens at {where.endpoint}; nothing was sent")
    sent = _Sending(settings, where, endpoint, service or settings.service_name)
    with sent:
        found = [sent.file(path, turns[path]) for path in paths]
    if as_json:
        write([dumped(_as_json(where, found, sent.dropped)) + b"\n"], None)
    else:
        show_lines(_as_text(one, where) for one in found)
    if any(one["failed"] for one in found):
        say(f"turntrace: {where.endpoint} did not take everything; ids are kept, so it can be sent again")
        raise typer.Exit(_FAILED_STATUS)


def _outermost(path: str) -> list[Turn]:
    """The turns of a file that lie in no other.

    Raises:
        TraceReadError: when it cannot be read.
        UsageError: when it holds none.
    """
    result = read_paths([path])
    turns = [turn for turn in result.turns if turn.parent_run_id is None]
    if not turns:
        raise nothing_in([path], result.issues)
    return turns


class _Sending:
    """``with _Sending(...) as sending``: the exporter and the progress bar."""

    def __init__(
        self, settings: Settings, where: Destination, endpoint: str | None, service: str | None
    ) -> None:
        from turntrace.otel.sender import Sender

        # None: the variables say where, certificates and paths of their own included
        given = endpoint or (None if settings.endpoint else where.endpoint)
        self._sender = Sender(settings, given, keeps_content=settings.capture_content)
        self._service = service
        self._stack = ExitStack()
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        self._sender.close()

    @property
    def dropped(self) -> dict[str, int]:
        """What was held back, by reason."""
        return self._sender.dropped

    def file(self, path: str, turns: Sequence[Turn]) -> dict[str, Any]:
        """Send the turns of a file; what became of their spans."""
        spans = self._spans(turns)
        task = self._begin(path, sum(len(turn.spans) + 1 for turn in turns))
        counts = {"spans": 0, "failed": 0}
        while batch := list(islice(spans, _BATCH_SPANS)):
            is_taken = self._sender.send_spans(batch)
            counts["spans" if is_taken else "failed"] += len(batch)
            if task is not None:
                self._bar.advance(task, len(batch))
        return {"path": path, "turns": len(turns), **counts}

    def _spans(self, turns: Sequence[Turn]) -> Iterator[Any]:
        from turntrace.otel.turn_spans import resource_of, spans_of_turn

        for turn in turns:
            yield from spans_of_turn(
                turn, attributed(turn), resource_of(self._service or turn.agent or "turntrace")
            )

    def _begin(self, path: str, total: int) -> Any:
        """A line of progress for a long file on a terminal."""
        if total < _LONG_SPANS or not _is_watched():
            return None
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = self._stack.enter_context(
                Progress(console=Console(stderr=True, force_terminal=True), transient=True)
            )
        return self._bar.add_task(printable(path), total=total)


def _is_watched() -> bool:
    """Whether a person sees what is written to standard error."""
    return sys.stderr.isatty()


def _as_text(one: dict[str, Any], where: Destination) -> str:
    turns = f"{count_text(one['turns'])} turn{'' if one['turns'] == 1 else 's'}"
    spans = f"{count_text(one['spans'])} span{'' if one['spans'] == 1 else 's'}"
    lost = f", {count_text(one['failed'])} not taken" if one["failed"] else ""
    return f"{printable(one['path'])}: {turns}, {spans} sent to {printable(where.endpoint)} ({where.protocol}){lost}"


def _as_json(where: Destination, found: Sequence[dict[str, Any]], dropped: dict[str, int]) -> dict[str, Any]:
    return {
        "schema": 1,
        "endpoint": where.endpoint,
        "protocol": where.protocol,
        "files": list(found),
        "dropped": dropped,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("send", rich_help_panel="Files")(send)
