"""``turntrace run``: any agent, recorded, as if turntrace were not there."""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final

import typer

from turntrace.cli.launch import recognised
from turntrace.cli.options import Content, ContentOption, EndpointOption
from turntrace.cli.outcome import Outcome, outcome_of
from turntrace.cli.output import say
from turntrace.cli.overview import overview, trace_pointer
from turntrace.cli.preparation import Wish, announcement, labels_of, plan_of
from turntrace.cli.receiving import Receiving, preset_of
from turntrace.cli.selection import Selection
from turntrace.cli.sending_on import send_on
from turntrace.cli.supervision import FAILED_STATUS, Ending, StartError, executable, leave, supervise
from turntrace.config import Settings, environment
from turntrace.core.model import Turn
from turntrace.files.append import Rotation
from turntrace.otel.destination import destination
from turntrace.otel.launch import child_environment
from turntrace.report.blocks import Pointers
from turntrace.report.text import text

__all__ = ["register", "run"]

_WIDTH: Final = 100
_NO_CONTENT: Final = ", no prompts or outputs inside"


def run(
    *,
    command: Annotated[
        list[str], typer.Argument(metavar="-- CMD ARGS...", help="The agent and its arguments.")
    ],
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="OUT", help="Where the trace goes; a file in .turntrace if unset."),
    ] = None,
    endpoint: EndpointOption = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="What CMD is: codex, claude, gemini, opencode, or otel for any other.",
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent's name.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="K=V", help="A label of every turn; repeatable.")
    ] = None,
    no_instrument: Annotated[
        bool, typer.Option("--no-instrument", help="Start nothing inside a Python command.")
    ] = False,
    children: Annotated[
        bool, typer.Option("--children", help="Instrument the Pythons that the agent starts, too.")
    ] = False,
    hands_off: Annotated[
        bool,
        typer.Option(
            "--hands-off", help="Change no setting: only TRACEPARENT and TURNTRACE_TRACE are added."
        ),
    ] = False,
    content: ContentOption = Content.DROP,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit status 125 when the trace is missing or incomplete.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Run an agent and record its turn; its output, terminal, signals and exit status stay its own.

    A Python command is instrumented without a change of its code. Any other one gets a private OTLP receiver
    on this machine, and codex, claude, gemini and opencode are told by flags and variables to send their
    telemetry there; no file of theirs is changed. What a command exported before still arrives where it did.

    The exit status is the agent's: 128+N after signal N. It is 125 when turntrace itself failed, 126 when CMD
    cannot be executed, 127 when there is no CMD.

    For example:

        turntrace run -- python agent.py
        turntrace run --trace run.ndjson --label task=fix-42 -- uv run agent.py
        turntrace run -- codex exec "fix the failing test"
        turntrace run --endpoint http://localhost:4317 -- my-agent "do it"
    """
    settings = Settings.from_env()
    wish = Wish(
        trace=trace,
        endpoint=endpoint,
        agent=agent,
        labels=labels_of(label or ()),
        content=content.value,
        instrument=not no_instrument and not hands_off,
        preset=preset,
        receive=not hands_off,
        children=children,
    )
    is_closed = getattr(sys, "stderr", None) is None  # `2>&-`
    try:
        executable(command[0])
        ending, is_whole = _run(command, wish, settings, quiet=quiet or is_closed)
    except StartError as error:
        _tell([str(error)], quiet=is_closed)
        raise typer.Exit(error.status) from error
    raise typer.Exit(FAILED_STATUS if strict and not is_whole else leave(ending))


def _run(arguments: list[str], wish: Wish, settings: Settings, *, quiet: bool) -> tuple[Ending, bool]:
    """Run the command; how it ended, and whether its trace is whole."""
    if settings.disabled or settings.sdk_disabled:
        _tell(["nothing is recorded: TURNTRACE_DISABLED or OTEL_SDK_DISABLED is set"], quiet=quiet)
        return supervise(arguments, environment()), False
    command = recognised(arguments)
    goal = destination(wish.endpoint, settings)
    is_instrumented = wish.instrument and command.can_record
    preset = preset_of(wish.preset, command, is_instrumented=is_instrumented) if wish.receive else None
    plan = plan_of(wish, command, settings, preset)
    since_ns = time.time_ns() if plan.appends else 0  # what was there before is not this run's
    try:
        with Receiving(preset, arguments, environment(), plan) as receiving:
            _tell([*announcement(plan, command, goal, preset), *receiving.remarks], quiet=quiet)
            began_ns = time.time_ns()
            ending = supervise(receiving.argv, child_environment(receiving.environment, plan))
            lived = began_ns, time.time_ns()
            _tell(receiving.settle(settings.exit_timeout_s), quiet=quiet)
            rotation = Rotation(settings.trace_max_bytes, settings.trace_keep)
            _tell(receiving.record(rotation, lived), quiet=quiet)
            if goal is not None and (wish.endpoint or not receiving.is_passed_on):
                _tell(_sent_on(receiving.turns, wish, settings), quiet=quiet)
        outcome = outcome_of(plan, settings, since_ns, ending.status)
    finally:
        Path(f"{plan.trace}.notes").unlink(missing_ok=True)
    _show(outcome, settings, quiet=quiet)
    return ending, outcome.is_whole


def _sent_on(turns: Sequence[Turn], wish: Wish, settings: Settings) -> tuple[str, ...]:
    keeps_content = wish.content == "keep"
    timeout_s = settings.exit_timeout_s
    return send_on(turns, wish.endpoint, settings, keeps_content=keeps_content, timeout_s=timeout_s)


def _tell(remarks: Iterable[str], *, quiet: bool) -> None:
    if not quiet:
        with _Heard():
            for remark in remarks:
                say(f"turntrace: {remark}")


class _Heard:
    """Inside the block a standard error that takes nothing is no error: nobody reads it, its disk is full.

    From then on turntrace is silent; the descriptor is left alone, it is the agent's as well.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, OSError):
            return False
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        return True


def _show(outcome: Outcome, settings: Settings, *, quiet: bool) -> None:
    """The table on standard error, which is the agent's as well: one empty line before it."""
    _tell(outcome.remarks, quiet=quiet)
    if not quiet and outcome.selection is not None:
        with _Heard():
            _print(outcome.selection, settings)


def _print(selection: Selection, settings: Settings) -> None:
    note = "" if settings.capture_content else _NO_CONTENT
    blocks = [
        *overview(selection),
        Pointers(rows=(trace_pointer(selection.paths[0], selection.cases, note),)),
    ]
    is_terminal = sys.stderr.isatty()
    width = (os.get_terminal_size(sys.stderr.fileno()).columns if is_terminal else 0) or _WIDTH
    sys.stderr.write("\n" + text(blocks, width=width, bars=is_terminal))


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": False}
    app.command("run", rich_help_panel="Record", context_settings=settings)(run)
