"""``turntrace doctor``: what is installed and active, who exports what where, why nothing would arrive."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import orjson
import typer

from turntrace.cli.diagnosis import Diagnosis, diagnose
from turntrace.cli.output import show_lines, write
from turntrace.config import environment
from turntrace.report.strings import printable

__all__ = ["doctor", "register"]

_FAILED_STATUS: Final = 1
_WORDS: Final = {
    "starts": "starts",
    "twin": "left out: would count double beside",
    "conflict": "left out:",
    "disabled": "left out:",
}
_SOURCES: Final = {
    "native": "its own spans",
    "instrumentation": "spans of ",
    "adapter": "spans of turntrace run's adapter",
    "none": "no spans",
}


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Say what would be recorded and exported from here, and what stands in the way.

    Exit status 1 when something keeps turns from being recorded.

    For example:

        turntrace doctor
        turntrace doctor --json
    """
    found = diagnose(environment())
    if as_json:
        write([orjson.dumps(_as_json(found), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)], None)
    else:
        show_lines(printable(line) for line in _as_text(found))
    if found.problems:
        raise typer.Exit(_FAILED_STATUS)


def _as_text(found: Diagnosis) -> Iterator[str]:
    yield f"{found.python} on {found.platform}, {found.executable}"
    yield from (f"  {name} {version}" for name, version in found.packages.items())
    yield ""
    yield f"recording  {found.decision}"
    yield "           an application that has a tracer provider keeps it; only it exports then"
    yield f"endpoint   {_endpoint(found)}"
    state = "writable" if found.folder.is_writable else "not writable"
    yield f"folder     {found.folder.path}: {state}"
    yield f"platform   {', '.join(_ability(name, there) for name, there in found.abilities.items())}"
    yield f"phases     stamped by nothing yet: {', '.join(found.planned_phases) or 'none'}"
    yield ""
    yield "instrumentations" if found.instrumentors else "no instrumentation is installed"
    for one in found.instrumentors:
        yield f"  {one.name}: {one.package} {one.version} {_WORDS[one.verdict]} {one.reason}".rstrip()
    yield ""
    yield "model SDKs" if found.sources else "no model SDK is installed"
    for source in found.sources:
        yield f"  {source.sdk} {source.version}: {_SOURCES[source.kind]}{source.package}, since {source.reason}"
    yield ""
    yield "variables" if found.variables else "no variable of turntrace or OpenTelemetry is set"
    for variable in found.variables:
        yield f"  {variable.name}={variable.value}{_remark(variable.is_known, variable.suggestion)}"
    yield from (f"problem: {problem}" for problem in found.problems)


def _endpoint(found: Diagnosis) -> str:
    goal = found.endpoint
    if goal is None:
        return "none: spans go to the trace file only"
    state = "something listens there" if found.is_listening else "nothing listens there"
    return f"{goal.endpoint} over {goal.protocol} ({goal.rule}); {state}"


def _ability(name: str, there: bool) -> str:
    return f"{name} {'supported' if there else 'not supported'}"


def _remark(is_known: bool, suggestion: str | None) -> str:
    if is_known:
        return ""
    return "  is no variable that is read" + (f"; did you mean {suggestion}?" if suggestion else "")


def _as_json(found: Diagnosis) -> dict[str, Any]:
    goal = found.endpoint
    return {
        "schema": 1,
        "python": found.python,
        "executable": found.executable,
        "platform": found.platform,
        "packages": found.packages,
        "decision": found.decision,
        "endpoint": None
        if goal is None
        else {
            "endpoint": goal.endpoint,
            "protocol": goal.protocol,
            "rule": goal.rule,
            "listening": found.is_listening,
        },
        "folder": {
            "path": found.folder.path,
            "writable": found.folder.is_writable,
            "lockable": found.folder.can_lock,
        },
        "abilities": found.abilities,
        "instrumentations": [
            {
                "name": one.name,
                "package": one.package,
                "version": one.version,
                "verdict": one.verdict,
                "reason": one.reason,
            }
            for one in found.instrumentors
        ],
        "sources": [
            {
                "sdk": one.sdk,
                "version": one.version,
                "kind": one.kind,
                "package": one.package,
                "reason": one.reason,
            }
            for one in found.sources
        ],
        "variables": [
            {"name": one.name, "value": one.value, "known": one.is_known, "suggestion": one.suggestion}
            for one in found.variables
        ],
        "planned_phases": found.planned_phases,
        "problems": found.problems,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", rich_help_panel="Files")(doctor)
