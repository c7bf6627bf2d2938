"""Tells a command how to send its telemetry to a receiver: a pure function over the table of presets."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from turntrace.collect.own_telemetry import SIGNALS, Forward, exporters_in, forward_of, is_otlp
from turntrace.collect.presets import PRESETS, Preset

__all__ = ["Prepared", "configuration_path", "matching", "prepared"]

_FETCHERS: Final = frozenset({"npx", "bunx", "pnpx", "uvx"})
_FETCHING_WORDS: Final = frozenset(
    {("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x")}
)
_STARTERS: Final = frozenset({"env", "ionice", "nice", "nohup", "setsid", "stdbuf", "time", "timeout"})
_INTERPRETERS: Final = frozenset({"node", "bun", "deno"})
_WITH_VALUE: Final = frozenset({"-p", "--package", "-c", "--call"})
_SUFFIXES: Final = (".exe", ".cmd", ".js", ".mjs", ".cjs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A command as it is to be started; ``notes`` are for the person, one line each."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = ()
    forward: Forward | None = None


def matching(argv: Sequence[str]) -> Preset | None:
    """The preset of the agent that ``argv`` starts, by path, through npx and the like, or by node.

    >>> matching(["npx", "-y", "@openai/codex@latest", "exec", "hello"]).name
    'codex'
    >>> matching(["timeout", "60", "claude", "-p", "hello"]).name
    'claude'
    """
    place = _place(argv)
    return None if place is None else place[0]


def _place(argv: Sequence[str]) -> tuple[Preset, int] | None:
    """The preset, and the index of the word that names the agent."""
    index = _named_at(argv)
    if index is None:
        return None
    word = argv[index]
    at = word.rfind("@")
    names = {_bare(word), word[:at] if at > 0 else word}
    for preset in PRESETS.values():
        if names & (preset.commands | preset.packages):
            return preset, index
    return None


def _named_at(argv: Sequence[str]) -> int | None:
    """Where the program stands: first, or after words that start, fetch or interpret it."""
    at = _after_starters(argv)
    words = argv[at:]
    if not words:
        return None
    first = _bare(words[0])
    if first in _FETCHERS | _INTERPRETERS:
        return _first_word(argv, at + 1)
    return _first_word(argv, at + 2) if (first, *words[1:2]) in _FETCHING_WORDS else at


def _after_starters(argv: Sequence[str]) -> int:
    """Past ``env A=1``, ``timeout 60``, ``nice -n 5`` and the like."""
    at = 0
    while at < len(argv) and _bare(argv[at]) in _STARTERS:
        at += 1
        while at < len(argv) and (argv[at].startswith("-") or "=" in argv[at] or argv[at][:1].isdecimal()):
            at += 1
    return at


def _first_word(argv: Sequence[str], start: int) -> int | None:
    """The first word from ``start`` on that is no option and no option's value."""
    skipped = False
    for index in range(start, len(argv)):
        if skipped or argv[index].startswith("-"):
            skipped = not skipped and argv[index] in _WITH_VALUE
        else:
            return index
    return None


def _bare(word: str) -> str:
    name = PurePath(word).name
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def configuration_path(preset: Preset, environment: Mapping[str, str]) -> PurePath | None:
    """The file that may tell where the agent sends its telemetry by itself; only read, never written."""
    if preset.configuration is None:
        return None
    variable, folder, name = preset.configuration
    home = environment.get("HOME") or environment.get("USERPROFILE") or ""
    return PurePath(environment.get(variable) or PurePath(home) / folder) / name


def prepared(
    preset: Preset,
    argv: Sequence[str],
    environment: Mapping[str, str],
    endpoint: str,
    token: str,
    *,
    configuration: str = "",
) -> Prepared:
    """Switch on the telemetry of ``argv`` toward ``endpoint``; nothing given is changed.

    Args:
        preset: what the agent needs.
        argv: the command.
        environment: its variables.
        endpoint: the receiver's address without a path.
        token: goes into the path, since agents treat headers differently; a header of the user's arrives.
        configuration: the text of ``configuration_path``, if there is one.

    What cannot be used is left as it is and told in a note; nothing is raised.
    """
    base = f"{endpoint.rstrip('/')}/{token}" if token else endpoint.rstrip("/")
    words = {"endpoint": base, **{signal: f"{base}/v1/{signal}" for signal in SIGNALS}}
    notes: list[str] = []
    forward = forward_of(preset, environment, configuration)
    changed = {name: value for name, value in environment.items() if name not in preset.removed}
    changed |= {name: value.format(**words) for name, value in preset.variables.items()}
    for name, value in preset.defaults.items():
        changed[name] = environment.get(name) or value
    for name, word in preset.lists.items():
        changed[name] = _added(environment.get(name, ""), word)
    for name, document in preset.documents.items():
        merged = _merged_text(environment.get(name, ""), document)
        if merged is None:
            notes.append(f"{name} is no JSON object and stays as it is: {preset.name} may send nothing")
        else:
            changed[name] = merged
    notes.extend(
        f"{name} is set, so {preset.name} may send nothing here"
        for name in preset.elsewhere
        if environment.get(name)
    )
    if forward is not None:
        who = preset.name if preset.commands else "the command"
        notes.append(f"{who} sends its own telemetry to {forward.hosts}, which still gets it")
    return Prepared(
        argv=_with_arguments(preset, argv, [word.format(**words) for word in preset.arguments]),
        environment=changed,
        notes=tuple(notes),
        forward=forward,
    )


def _with_arguments(preset: Preset, argv: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    place = _place(argv)
    index = place[1] if place is not None and place[0] is preset else 0
    return (*argv[: index + 1], *added, *argv[index + 1 :])


def _added(words: str, word: str) -> str:
    """A comma-separated list with ``word``, without the word none and without other names of OTLP.

    Python knows otlp_proto_grpc, which our receiver does not speak, and otlp_proto_http, which would send twice.
    """
    others = [one for one in exporters_in(words) if one != "none" and not is_otlp(one)]
    return ",".join([*others, word])


def _merged_text(text: str, document: Mapping[str, object]) -> str | None:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return json.dumps(_merged(value, document)) if isinstance(value, dict) else None


def _merged(value: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``value`` with ``over`` laid over it, one level of objects deep, as deep as the presets go."""
    merged = dict(value)
    for name, part in over.items():
        mine = merged.get(name)
        merged[name] = {**mine, **part} if isinstance(mine, dict) and isinstance(part, Mapping) else part
    return merged
