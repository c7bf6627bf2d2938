"""Before a command is run: what was asked, where the trace goes, what is said of it."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from turntrace.cli.launch import Command, name_of
from turntrace.cli.output import UsageError
from turntrace.collect.presets import Preset
from turntrace.config import Settings
from turntrace.files.out import default_out, expand
from turntrace.files.preparation import prepare
from turntrace.otel.destination import Destination
from turntrace.otel.launch import Plan, new_traceparent
from turntrace.otel.probe import address_of, is_listening
from turntrace.otel.remote import context_from
from turntrace.otel.run_ids import new_run_id

__all__ = ["Wish", "announcement", "labels_of", "plan_of", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of ``run``; None leaves it to the environment.

    ``instrument`` is about Python commands, ``receive`` about what others send.
    """

    trace: str | None = None
    endpoint: str | None = None
    agent: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    content: Literal["drop", "keep"] = "drop"
    instrument: bool = True
    children: bool = False
    preset: str | None = None
    receive: bool = True


def plan_of(wish: Wish, command: Command, settings: Settings, preset: Preset | None = None) -> Plan:
    """How ``command`` is started. Empties the trace file, unless the run is part of another recorded one.

    A TRACEPARENT that is there stays the parent. With a TURNTRACE_TRACE beside it turntrace was started by
    an agent that it records: the file is that agent's, and is appended to.

    Raises:
        UsageError: when the trace was to go to standard error.
        TraceWriteError: when the file cannot be written.
    """
    template = wish.trace or settings.trace or default_out()
    if template == "-":
        message = "run needs a file for the trace: standard error is the agent's own"
        raise UsageError(message)
    known = preset.name if preset is not None and preset.commands else None
    name = wish.agent or known or name_of(command)
    out = Path(expand(template, run_id=new_run_id(), agent=name)).absolute()
    is_inner = context_from(settings.traceparent, settings.tracestate) is not None
    appends = is_inner and wish.trace is None and settings.trace is not None
    prepare(out, truncate=not appends)
    return Plan(
        trace=str(out),
        appends=appends,
        traceparent=settings.traceparent if is_inner and settings.traceparent else new_traceparent(),
        tracestate=settings.tracestate if is_inner else None,
        labels=wish.labels,
        instrument=wish.instrument and command.can_record and known is None,
        agent=name,
        endpoint=wish.endpoint,
        content=wish.content,
        notes=f"{out}.notes",
        parent_pid=None if command.is_launcher or not hasattr(os, "fork") else os.getpid(),
        children=wish.children,
    )


def labels_of(texts: Sequence[str]) -> dict[str, str]:
    """The labels in texts of the form ``K=V``.

    >>> labels_of(["task=fix-42"])
    {'task': 'fix-42'}

    Raises:
        UsageError: for a text that is no label.
    """
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or "," in text:
            message = f"--label {text}: use KEY=VALUE without a comma"
            raise UsageError(message)
        labels[key.strip()] = value.strip()
    return labels


def announcement(
    plan: Plan, command: Command, goal: Destination | None, preset: Preset | None = None
) -> Iterator[str]:
    """What is recorded, where, and what is left out; then what the endpoint has to say, if there is one.

    The endpoint is probed for at most a quarter of a second.
    """
    path = shown(plan.trace)
    if plan.instrument or preset is not None:
        left_out = "prompts and outputs left out" if plan.content == "drop" else "prompts and outputs kept"
        more = "" if goal is None else f" and sending spans to {_origin(goal.endpoint)} ({goal.protocol})"
        yield f"recording {plan.agent}{_way(preset)} to {path}{more}; {left_out}"
    else:
        why = "is not instrumented" if command.can_record else "is no Python command"
        yield f"{plan.agent} {why}; it gets TRACEPARENT, and TURNTRACE_TRACE for {path}"
    if goal is not None and not is_listening(goal.endpoint):
        host, port = address_of(goal.endpoint)
        yield f"nothing listens at {host}:{port}; the trace is in {path}"


def _origin(endpoint: str) -> str:
    """An endpoint without its path and user: a token may stand there."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else endpoint


def _way(preset: Preset | None) -> str:
    """How a command is recorded that is not recorded from inside."""
    if preset is None:
        return ""
    return " by its own telemetry" if preset.commands else " by what it sends over OTLP"


def shown(path: str) -> str:
    """The path as a person would type it here."""
    with contextlib.suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path
