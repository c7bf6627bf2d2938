"""How each coding agent is told to send its own telemetry: data, by arguments and variables only.

No home and no configuration folder is moved or written, so that a user stays logged in with his servers,
memory and rules. What is needed of an agent was seen with the versions in docs/coding-agents.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What switches on the telemetry of one agent.

    ``commands`` are its names without path and suffix, ``packages`` those that npx and the like start.
    In ``arguments`` and ``variables`` the words {endpoint}, {traces}, {metrics} and {logs} stand for
    addresses; arguments go right after the command. ``variables`` replace what the user set, ``defaults``
    do not, ``lists`` add a word to a comma-separated list, ``documents`` are merged over JSON, ``removed`` are
    taken away.

    ``switches``: variables that say that the agent's own telemetry was on; empty: always where an endpoint
    was set. ``exports_unasked``: a signal went out where no variable in ``lists`` named an exporter of it.
    ``endpoints``, ``protocols``: those that held its own endpoint and protocol, the best first; without a protocol
    it speaks ``protocol``, None: what the port says. ``configuration``: where a
    file may say so, below the home or the folder in the variable named there. ``elsewhere``: variables
    that lead telemetry away from every endpoint. ``hint``: why nothing may have arrived.
    """

    name: str
    commands: frozenset[str]
    packages: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    exports_unasked: bool = False
    documents: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ("OTEL_EXPORTER_OTLP_ENDPOINT",)
    protocols: tuple[str, ...] = ("OTEL_EXPORTER_OTLP_PROTOCOL",)
    protocol: str | None = None
    configuration: tuple[str, str, str] | None = None
    elsewhere: tuple[str, ...] = ()
    hint: str


_SIGNALS: Final = ("TRACES", "METRICS", "LOGS")
_EXPORTERS: Final = MappingProxyType({f"OTEL_{signal}_EXPORTER": "otlp" for signal in _SIGNALS})
_OF_ONE_SIGNAL: Final = tuple(
    f"OTEL_EXPORTER_OTLP_{signal}_{what}" for signal in _SIGNALS for what in ("ENDPOINT", "PROTOCOL")
)
_COMPRESSION: Final = tuple(
    f"OTEL_EXPORTER_OTLP_{signal}COMPRESSION" for signal in ("", "TRACES_", "METRICS_", "LOGS_")
)
_TO_US: Final = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
}


def _codex_exporter(key: str, signal: str) -> tuple[str, str]:
    return "-c", f'otel.{key}={{{{otlp-http={{{{endpoint="{{{signal}}}",protocol="binary"}}}}}}}}'


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset(
                name="codex",
                commands=frozenset({"codex"}),
                packages=frozenset({"@openai/codex"}),
                arguments=(
                    *_codex_exporter("exporter", "logs"),
                    *_codex_exporter("trace_exporter", "traces"),
                    *_codex_exporter("metrics_exporter", "metrics"),
                ),
                removed=_COMPRESSION,  # with gzip, which its exporter lacks, it sends nothing at all
                endpoints=(),
                configuration=("CODEX_HOME", ".codex", "config.toml"),
                hint="codex sends nothing in versions without [otel], or where a requirements.toml of your company pins [otel]; "
                "an interactive session sends when it ends",
            ),
            Preset(
                name="claude",
                commands=frozenset({"claude"}),
                packages=frozenset({"@anthropic-ai/claude-code"}),
                variables={
                    "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
                    "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
                    **_TO_US,
                },
                lists=_EXPORTERS,
                defaults={
                    "OTEL_METRIC_EXPORT_INTERVAL": "5000",
                    "OTEL_LOGS_EXPORT_INTERVAL": "1000",
                    "OTEL_TRACES_EXPORT_INTERVAL": "1000",
                },
                removed=_OF_ONE_SIGNAL,
                switches=("CLAUDE_CODE_ENABLE_TELEMETRY",),
                configuration=("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
                elsewhere=("DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
                hint="claude sends nothing where managed settings or the env of its settings.json set "
                "OTEL_EXPORTER_OTLP_ENDPOINT or switch telemetry off, and no spans in old versions",
            ),
            Preset(
                name="gemini",
                commands=frozenset({"gemini"}),
                packages=frozenset({"@google/gemini-cli"}),
                variables={
                    "GEMINI_TELEMETRY_ENABLED": "true",
                    "GEMINI_TELEMETRY_TARGET": "local",
                    "GEMINI_TELEMETRY_OTLP_ENDPOINT": "{endpoint}",
                    "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http",
                    "GEMINI_TELEMETRY_TRACES_ENABLED": "true",
                },
                defaults={"GEMINI_TELEMETRY_LOG_PROMPTS": "false"},
                switches=("GEMINI_TELEMETRY_ENABLED",),
                endpoints=("GEMINI_TELEMETRY_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
                protocols=("GEMINI_TELEMETRY_OTLP_PROTOCOL",),
                protocol="grpc",
                configuration=("", ".gemini", "settings.json"),
                elsewhere=("GEMINI_TELEMETRY_OUTFILE", "OTEL_SDK_DISABLED"),
                hint="gemini sends nothing where telemetry.outfile or target gcp is set in its settings.json "
                "or by an administrator, and no spans in old versions",
            ),
            Preset(
                name="opencode",
                commands=frozenset({"opencode"}),
                packages=frozenset({"opencode-ai"}),
                variables={"OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}"},
                # it ends without sending what waits: the last model call would never arrive
                defaults={"OTEL_BSP_SCHEDULE_DELAY": "20"},
                documents={"OPENCODE_CONFIG_CONTENT": {"experimental": {"openTelemetry": True}}},
                hint="opencode sends nothing in old versions, and loses what waits when it is killed",
            ),
            Preset(
                name="otel",
                commands=frozenset(),
                variables=_TO_US,
                lists=_EXPORTERS,
                exports_unasked=True,
                defaults={"OTEL_BSP_SCHEDULE_DELAY": "1000"},
                removed=_OF_ONE_SIGNAL,
                elsewhere=("OTEL_SDK_DISABLED",),
                hint="the program has no OpenTelemetry SDK, or sets its exporter itself",
            ),
        )
    }
)
"""The presets by name."""
