"""Writes turn-metrics.yaml: how the collector makes turntrace.* metrics of the spans of one-shot processes.

``python collector-config/make_turn_metrics.py``; a test says that the file agrees. The labels are set on the spans
by collector.yaml (transform/labels); the bounds and names are those of the metrics that services send.
"""

from collections.abc import Iterator
from pathlib import Path

from turntrace.core.contract import PHASES
from turntrace.core.metric_table import METRICS
from turntrace.otel.answer import COUNTED

TURN = 'span.attributes["turntrace.turn.status"] != nil and span.attributes["turntrace.parent_run_id"] == nil'
FIRST = 'span.attributes["turntrace.repeated"] == nil'
GENERATION = f'span.attributes["phase"] == "generation" and {FIRST}'
TOOL = f'span.attributes["phase"] == "tool_execution" and {FIRST} and span.attributes["tool"] != nil'
TOKENS = {
    "input": "input_tokens",
    "cache_read": "cache_read.input_tokens",
    "cache_write": "cache_write.input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning.output_tokens",
}

HEAD = """\
# Written by make_turn_metrics.py; do not edit. The turntrace.* metrics of one-shot processes, of their spans.
connectors:
  signaltometrics:
    error_mode: ignore
    spans:
"""


def main() -> None:
    """Write the file beside this one."""
    Path(__file__).with_name("turn-metrics.yaml").write_text(text(), encoding="utf-8")


def text() -> str:
    """The whole file."""
    return HEAD + "".join(line + "\n" for entry in entries() for line in entry)


def entries() -> Iterator[list[str]]:
    """The lines of each metric."""
    by_status = labels("agent", "status")
    yield counter("turntrace.turns", by_status, TURN, "1")
    yield histogram(
        "turntrace.turn.active_duration",
        by_status,
        TURN,
        seconds("turntrace.turn.active_ms"),
    )
    yield histogram("turntrace.turn.coverage", labels("agent"), *known("turntrace.turn.coverage"))
    yield histogram("turntrace.turn.rounds", labels("agent"), *known("turntrace.turn.rounds"))
    yield from walls()
    yield histogram(
        "turntrace.phase.exclusive_time",
        [*labels("agent", "phase"), *optional("tool", "model")],
        'span.attributes["phase"] != nil and span.attributes["turntrace.exclusive_ms"] != nil',
        seconds("turntrace.exclusive_ms"),
    )
    yield from calls()
    yield from counts()


def walls() -> Iterator[list[str]]:
    """One entry for each phase: the label is the same for all turns, the value is the phase's."""
    for phase in (*PHASES, "unattributed"):
        name = f"turntrace.wall.{phase}_ms"
        yield histogram(
            "turntrace.phase.wall_time",
            [*labels("agent"), *fixed("phase", phase)],
            f'{TURN} and span.attributes["{name}"] != nil',
            seconds(name),
        )


def calls() -> Iterator[list[str]]:
    """What the spans of calls tell."""
    by_call = labels("agent", "model", "provider")
    first = "turntrace.first_token_ms"
    yield histogram(
        "turntrace.generation.first_token",
        by_call,
        f'{GENERATION} and span.attributes["{first}"] != nil',
        seconds(first),
    )
    output = "gen_ai.usage.output_tokens"
    streamed_s = f"(Seconds(span.end_time - span.start_time) - {seconds(first)})"
    yield histogram(
        "turntrace.generation.output_rate",
        labels("agent", "model"),
        f'{GENERATION} and span.attributes["{first}"] != nil and span.attributes["{output}"] != nil'
        f" and {streamed_s} > 0.0",
        f'Double(span.attributes["{output}"]) / {streamed_s}',
    )
    yield counter(
        "turntrace.usage_missing",
        labels("agent", "model"),
        f'{GENERATION} and span.attributes["outcome"] == "ok" and span.attributes["{output}"] == nil'
        ' and span.attributes["gen_ai.usage.input_tokens"] == nil',
        "1",
    )
    yield counter(
        "turntrace.model_requests", labels("agent", "model", "provider", "outcome"), GENERATION, "1"
    )
    yield counter("turntrace.tool_calls", labels("agent", "tool", "outcome"), TOOL, "1")
    yield counter(
        "turntrace.retries",
        labels("agent", "model", "reason"),
        'span.attributes["phase"] == "retry_wait"',
        "1",
    )
    for kind, name in TOKENS.items():
        source = f"gen_ai.usage.{name}"
        yield counter(
            "turntrace.tokens",
            [*labels("agent", "model"), *fixed("type", kind)],
            f'{GENERATION} and span.attributes["{source}"] != nil',
            f'Int(span.attributes["{source}"])',
        )


def counts() -> Iterator[list[str]]:
    """What the turn's span counts."""
    for name in ("compactions", *COUNTED):
        source = f"turntrace.turn.{name}"
        condition = f'{TURN} and span.attributes["{source}"] != nil and span.attributes["{source}"] > 0'
        yield counter(f"turntrace.{name}", labels("agent"), condition, f'Int(span.attributes["{source}"])')


def known(name: str) -> tuple[str, str]:
    """Condition and value of a turn's attribute."""
    return f'{TURN} and span.attributes["{name}"] != nil', f'Double(span.attributes["{name}"])'


def seconds(name: str) -> str:
    """The value of an attribute in milliseconds."""
    return f'Double(span.attributes["{name}"]) / 1000.0'


def labels(*names: str) -> list[str]:
    """Attributes that a point has whether the span has them or not."""
    return [f"- {{key: {name}, default_value: unknown}}" for name in names]


def optional(*names: str) -> list[str]:
    """Attributes that a point has when the span has them."""
    return [f"- {{key: {name}, optional: true}}" for name in names]


def fixed(name: str, value: str) -> list[str]:
    """An attribute that no span has: its default is the value."""
    return [f"- {{key: {name}, default_value: {value}}}"]


def counter(name: str, attributes: list[str], condition: str, value: str) -> list[str]:
    """The lines of a counter."""
    return [
        *head(name, attributes, condition),
        "        sum:",
        "          monotonic: true",
        f"          value: {quoted(value)}",
    ]


def histogram(name: str, attributes: list[str], condition: str, value: str) -> list[str]:
    """The lines of a histogram."""
    numbers = ", ".join(f"{bound:g}" for bound in METRICS[name].bounds)
    return [
        *head(name, attributes, condition),
        "        histogram:",
        f"          buckets: [{numbers}]",
        f"          value: {quoted(value)}",
    ]


def head(name: str, attributes: list[str], condition: str) -> list[str]:
    """What all metrics have."""
    return [
        f"      - name: {name}",
        f"        unit: {quoted(METRICS[name].unit)}",
        "        include_resource_attributes: [{key: service.name}]",
        "        attributes:",
        *(f"          {line}" for line in attributes),
        "        conditions:",
        f"          - {quoted(condition)}",
    ]


def quoted(value: str) -> str:
    """A YAML string in single quotes; $ is doubled, which the collector reads as one."""
    return "'" + value.replace("'", "''").replace("$", "$$") + "'"


if __name__ == "__main__":
    main()
