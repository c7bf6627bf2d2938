"""``turntrace demo``: the main job without keys, network or code of one's own."""

import contextlib
from pathlib import Path
from typing import Annotated, Final

import typer

from turntrace.cli.output import UsageError, say, show
from turntrace.cli.overview import next_pointer, overview, trace_pointer
from turntrace.cli.selection import load
from turntrace.cli.view import Shown, show_page
from turntrace.config import Settings
from turntrace.files.out import default_out
from turntrace.report.blocks import Pointer, Pointers

__all__ = ["demo", "register"]

_NO_CONTENT: Final = ", no prompts or outputs inside"


def demo(
    *,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="OUT", help="Where the trace goes; a file in .turntrace if unset."),
    ] = None,
    view: Annotated[bool, typer.Option("--view", help="Show it as a picture too, in the browser.")] = False,
    service: Annotated[
        float | None,
        typer.Option(
            "--service", metavar="SECONDS", min=0, help="Turn after turn in one process, metrics on."
        ),
    ] = None,
) -> None:
    """Record a bundled agent against a bundled model server over real HTTP and show its report.

    It needs no key and no network. One turn takes about three seconds: four rounds, three tools, a refused
    request, an approval by a scripted person.

    For example:

        turntrace demo
        turntrace demo --trace demo.ndjson
        turntrace demo --view
        turntrace demo --service 60
    """
    settings = Settings.from_env()
    path = _record(trace or settings.trace or default_out(), service)
    selection = load([_shown(path)])
    note = "" if settings.capture_content else _NO_CONTENT
    trace_row = trace_pointer(selection.paths[0], selection.cases, note)
    show([*overview(selection), Pointers(rows=(trace_row, *_next(selection.paths[0])))])
    if view:
        show_page(Shown(selection))


def _next(path: str) -> tuple[Pointer, ...]:
    """What to type next."""
    own = Pointer(
        name="", target=("turntrace run -- python agent.py",), note="your own agent, no code change"
    )
    return (*next_pointer(path), own)


def _record(out: str, service: float | None) -> Path:
    """Run the agent and return the file its turns are in."""
    from turntrace.demo.service import run_demo, run_demo_service
    from turntrace.otel.setup import Request, configure

    handle = configure(
        Request(trace=out, mode="w", journal="sync", agent="demo", metrics=service is not None)
    )
    if handle.trace is None:
        raise UsageError(handle.decision)
    say(f"turntrace: recording to {_shown(handle.trace)}; {handle.decision}")
    try:
        if service is None:
            run_demo()
        else:
            with contextlib.suppress(KeyboardInterrupt):  # the way a person ends a service
                run_demo_service(service)
    finally:
        handle.shutdown()
    return handle.trace


def _shown(path: Path) -> str:
    """The path as a person would type it here."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", rich_help_panel="Look")(demo)
