"""``turntrace collect``: OTLP in, turns out."""

import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
import typer

from turntrace.cli.options import Content, ContentOption, EndpointOption
from turntrace.cli.output import UsageError, say, write
from turntrace.cli.preparation import shown
from turntrace.config import Settings
from turntrace.files.out import default_out, expand
from turntrace.files.preparation import prepare
from turntrace.otel.run_ids import new_run_id

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from turntrace.collect.receiver import Address
    from turntrace.collect.service import Service

__all__ = ["collect", "register"]

_HTTP_PORT: Final = 4318
_GRPC_PORT: Final = 4317
_LOOPBACK: Final = "127.0.0.1"
_FAILED_STATUS: Final = 1
_MOST_PORT: Final = 65_535


def collect(
    *,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc", metavar="A", help="HOST:PORT or PORT for grpc; 127.0.0.1:4317 if neither is given."
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="A", help="The same for http; 127.0.0.1:4318 if neither is given."),
    ] = None,
    endpoint: EndpointOption = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="OUT",
            help="Where turns go; a file in .turntrace if there is no --endpoint either.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="T", help="What senders must know.", envvar="TURNTRACE_TOKEN"),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="PATH", help="A certificate chain (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="PATH", help="Its key (PEM).")] = None,
    content: ContentOption = Content.DROP,
    spool: Annotated[
        Path | None,
        typer.Option("--spool", metavar="DIR", help="Where requests lie until they are turns, and sent on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was received, as JSON, at the end.")] = False,
) -> None:
    """Receive OTLP, make turns of it, write them to a file and send them on; until SIGINT or SIGTERM.

    A request is acknowledged when it is on disk: kill -9 loses nothing that was. Senders need no setting but
    the address; with --token also the header `Authorization: Bearer T` or `x-turntrace-token: T`, or T as the
    first part of the path. Exit status 1 when turns could not be written.

    For example:

        turntrace collect --trace turns.ndjson
        turntrace collect --endpoint http://localhost:4317 --spool /var/spool/turntrace
        turntrace collect --http 0.0.0.0:4318 --token "$TOKEN" --tls-cert cert.pem --tls-key key.pem
    """
    settings = Settings.from_env()
    addresses = _addresses(http, grpc)
    with ExitStack() as stack:
        out = _out(trace or settings.trace, endpoint)
        folder, is_lasting = _folder(stack, spool, out)
        service = _service(addresses, token, _tls(tls_cert, tls_key), _Job(out, endpoint, content, folder))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with service:
            _announce(service, _Job(out, endpoint, content, folder), has_token=bool(token))
            stack.enter_context(_figures(service, endpoint, settings))
            service.wait(stop)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one ends it at once
            received, made = service.finish()
    _tell(received, made, _Job(out, endpoint, content, folder), is_lasting=is_lasting, as_json=as_json)
    if spool is None and made is not None and made["is_written"] and made["is_delivered"]:
        shutil.rmtree(folder, ignore_errors=True)  # nothing waits in it
    if made is None or not made["is_written"]:
        raise typer.Exit(_FAILED_STATUS)


class _Job:
    """What becomes of what is received."""

    def __init__(self, out: Path | None, endpoint: str | None, content: Content, folder: Path) -> None:
        self.out = out
        self.endpoint = endpoint
        self.keeps_content = content is Content.KEEP
        self.folder = folder

    @property
    def command(self) -> list[str]:
        """What starts the worker."""
        given = {
            "folder": str(self.folder),
            "out": None if self.out is None else str(self.out),
            "endpoint": self.endpoint,
            "keeps_content": self.keeps_content,
        }
        return [sys.executable, "-m", "turntrace.cli.collect_worker", orjson.dumps(given).decode()]


def _out(trace: str | None, endpoint: str | None) -> Path | None:
    if trace is None and endpoint is not None:
        return None
    out = Path(expand(trace or default_out(), run_id=new_run_id(), agent="collect")).absolute()
    prepare(out, truncate=False)
    return out


def _folder(stack: ExitStack, spool: Path | None, out: Path | None) -> tuple[Path, bool]:
    """Where the queues lie, and whether they outlive this process."""
    if spool is not None:
        return spool.absolute(), True
    if out is not None:
        return out.with_name(f"{out.name}.spool"), True
    folder = Path(tempfile.mkdtemp(prefix="turntrace-collect-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder, False


def _addresses(http: str | None, grpc: str | None) -> "tuple[Address | None, Address | None]":
    if http is None and grpc is None:
        return _address("--http", str(_HTTP_PORT)), _address("--grpc", str(_GRPC_PORT))
    return (
        None if http is None else _address("--http", http),
        None if grpc is None else _address("--grpc", grpc),
    )


def _address(option: str, text: str) -> "Address":
    from turntrace.collect.receiver import Address

    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MOST_PORT:
        raise UsageError(f"{option} {text}: write HOST:PORT or PORT")
    return Address(host.strip("[]") or _LOOPBACK, int(port))


def _tls(certificate: Path | None, key: Path | None) -> Any:
    from turntrace.collect.receiver import Tls

    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("TLS needs both --tls-cert and --tls-key")
    return Tls(certificate, key)


def _service(
    addresses: "tuple[Address | None, Address | None]", token: str | None, tls: Any, job: _Job
) -> "Service":
    from turntrace.collect import receiver
    from turntrace.collect.service import Service, ServicePlan
    from turntrace.otel.destination import destination

    destination(job.endpoint, Settings.from_env())  # a wrong endpoint is told before anything listens
    settings = receiver.Settings(http=addresses[0], grpc=addresses[1], token=token or None, tls=tls)
    plan = ServicePlan(receiver=settings, folder=job.folder, command=job.command)
    return Service(plan, lambda line: say(f"turntrace: {line}"))


def _figures(service: "Service", endpoint: str | None, settings: Settings) -> AbstractContextManager[object]:
    """What the receiver took and refused, as metrics, where spans are sent on."""
    from turntrace.collect.receiver_metrics import observe_receiver
    from turntrace.otel.self_metrics import SelfMetrics

    def measure(meter: "Meter") -> None:
        observe_receiver(meter, lambda: service.receiver.totals)

    return SelfMetrics(endpoint, settings, "turntrace-collect", measure)


def _announce(service: "Service", job: _Job, *, has_token: bool) -> None:
    receiver = service.receiver
    places = [
        f"{place} ({name})"
        for name, place in (("http", receiver.http_endpoint), ("grpc", receiver.grpc_endpoint))
        if place
    ]
    say(f"turntrace: receiving OTLP at {' and '.join(places)}, {'with a token' if has_token else 'no token'}")
    if job.out is not None:
        say(f"turntrace: turns go to {shown(str(job.out))}, no prompts or outputs inside")
    if job.endpoint is not None:
        inside = "prompts and outputs inside" if job.keeps_content else "no prompts or outputs inside"
        say(f"turntrace: spans go on to {job.endpoint}, {inside}")


def _tell(
    received: Mapping[str, Any],
    made: Mapping[str, Any] | None,
    job: _Job,
    *,
    is_lasting: bool,
    as_json: bool,
) -> None:
    if made is None:
        say(f"turntrace: the process that makes turns failed; what came is in {job.folder}")
    elif not made["is_written"]:
        say(f"turntrace: the disk took no more turns; what came is in {job.folder}")
    if made is not None and not made["is_delivered"]:
        rest = (
            f"the rest is in {job.folder}, for the next start"
            if is_lasting
            else "the rest is lost without --spool"
        )
        say(f"turntrace: {job.endpoint} did not take all spans; {rest}")
    spans = received["items"].get("traces", 0)
    refused = sum(received["rejected"].values())
    turns = 0 if made is None else made["turns"]
    parts = (
        _count(spans, "span received"),
        _count(turns, "turn written"),
        _count(refused, "request refused"),
    )
    say(f"turntrace: {', '.join(parts)}")
    if as_json:
        result = {
            "schema": 1,
            "trace": None if job.out is None else str(job.out),
            "endpoint": job.endpoint,
            "received": received,
            "made": made,
        }
        write([orjson.dumps(result, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)], None)


def _count(number: int, what: str) -> str:
    noun, _, verb = what.partition(" ")
    return f"{number} {noun}{'' if number == 1 else 's'} {verb}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("collect", rich_help_panel="Record")(collect)
