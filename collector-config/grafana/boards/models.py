"""Models: calls, tokens, first tokens, retries."""

from boards.expressions import RECENT, drawn, mean, quantile, rate, ratio, total, zero_if
from boards.panels import Board, Panel, Query

__all__ = ["MODELS"]

_CALLS = "turntrace.model_requests"
_TOKENS = "turntrace.tokens"
_FIRST = "turntrace.generation.first_token"
_OWN = "turntrace.phase.exclusive_time"
_GENERATION = 'phase="generation"'
_ALL = total(_CALLS, model=True)
_INPUT = total(_TOKENS, where='type="input"', model=True)
_ANSWERED = total(_CALLS, where='outcome="ok"', model=True)
_NONE = "Empty while no model call has ended in the time range."
_NO_TOKENS = "Empty while no call has reported tokens: what is not reported is unknown, not 0."
_NO_STREAM = "Empty while no streamed call told its first token."

_TOTALS = (
    Panel(
        title="Model calls",
        means="Model calls that ended in the time range; a call and its retries are one.",
        empty=_NONE,
        unit="short",
        kind="stat",
        queries=[Query(expr=_ALL)],
        width=4,
        height=4,
    ),
    Panel(
        title="Calls not ended well",
        means="Share of the calls that ended with an error, were cancelled, abandoned or never finished.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[Query(expr=ratio(zero_if(total(_CALLS, where='outcome!="ok"', model=True), _ALL), _ALL))],
        width=4,
        height=4,
    ),
    Panel(
        title="Tokens in",
        means="Input tokens that calls reported, cache reads and writes included.",
        empty=_NO_TOKENS,
        unit="short",
        kind="stat",
        queries=[Query(expr=_INPUT)],
        width=4,
        height=4,
    ),
    Panel(
        title="Read from cache",
        means="Share of the input tokens that the provider read from its cache.",
        empty="Empty while no call has reported cache reads: what is not reported is unknown, not 0.",
        unit="percentunit",
        kind="stat",
        queries=[Query(expr=ratio(total(_TOKENS, where='type="cache_read"', model=True), _INPUT))],
        width=4,
        height=4,
    ),
    Panel(
        title="Tokens out",
        means="Output tokens that calls reported, reasoning included.",
        empty=_NO_TOKENS,
        unit="short",
        kind="stat",
        queries=[Query(expr=total(_TOKENS, where='type="output"', model=True))],
        width=4,
        height=4,
    ),
    Panel(
        title="Retries",
        means="Requests that were sent again.",
        empty=_NONE,
        unit="short",
        kind="stat",
        queries=[Query(expr=zero_if(total("turntrace.retries", model=True), _ALL))],
        width=4,
        height=4,
    ),
)

_PER_MODEL = (
    Panel(
        title="By model",
        means="Calls, tokens, mean time to the first token and mean own time of a call, by model. "
        "Own time is without retries and connecting, which are phases of their own.",
        empty=_NONE,
        unit="short",
        kind="table",
        queries=[
            Query(expr=total(_CALLS, "model", model=True), legend="calls"),
            Query(expr=total(_TOKENS, "model", 'type="input"', model=True), legend="tokens in"),
            Query(expr=total(_TOKENS, "model", 'type="output"', model=True), legend="tokens out"),
            Query(expr=mean(_FIRST, "model", model=True), legend="first token"),
            Query(expr=mean(_OWN, "model", _GENERATION, model=True), legend="own time"),
        ],
        width=24,
        units=(("first token", "s"), ("own time", "s")),
    ),
    Panel(
        title="Model calls a minute",
        means="Calls that ended, by model.",
        empty=_NONE,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate(_CALLS, 'model', model=True)}", legend="{{model}}")],
    ),
    Panel(
        title="How calls end",
        means="Calls a minute by outcome.",
        empty=_NONE,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate(_CALLS, 'outcome', model=True)}", legend="{{outcome}}")],
    ),
    Panel(
        title="Time to the first token",
        means="From the start of a streamed call to its first text, reasoning or tool call, attempts included: mean, "
        f"and the P95 of the last {RECENT}, by model.",
        empty=f"{_NO_STREAM} The P95 below 20 calls in {RECENT}.",
        unit="s",
        kind="lines",
        queries=[
            Query(expr=mean(_FIRST, "model", window="$__rate_interval", model=True), legend="mean {{model}}"),
            Query(
                expr=quantile(0.95, _FIRST, "model", window=RECENT, model=True),
                legend="P95 {{model}}",
                exemplar=True,
            ),
        ],
    ),
    Panel(
        title="Output rate",
        means="Output tokens of a streamed call for each second after its first token, on average over calls, by model.",
        empty=f"{_NO_STREAM} Calls that reported no tokens have no rate.",
        unit="suffix: tokens/s",
        kind="lines",
        queries=[
            Query(
                expr=mean("turntrace.generation.output_rate", "model", window="$__rate_interval", model=True),
                legend="{{model}}",
            )
        ],
    ),
    Panel(
        title="Tokens a minute",
        means="Tokens that calls reported, by type. Input includes cache reads and writes, output includes reasoning.",
        empty=_NO_TOKENS,
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate(_TOKENS, 'type', model=True)}", legend="{{type}}")],
    ),
    Panel(
        title="Retries a minute",
        means="Requests that were sent again, by reason.",
        empty="Empty while no request was sent again.",
        unit="cpm",
        kind="lines",
        queries=[Query(expr=f"60 * {rate('turntrace.retries', 'reason', model=True)}", legend="{{reason}}")],
    ),
    Panel(
        title="Answers without tokens",
        means="Share of the calls that ended well and reported no tokens: totals are too low by them.",
        empty=_NONE,
        unit="percentunit",
        kind="stat",
        queries=[
            Query(expr=ratio(zero_if(total("turntrace.usage_missing", model=True), _ANSWERED), _ANSWERED))
        ],
        width=6,
        height=6,
    ),
    Panel(
        title="Own time of phases around a call",
        means="Mean time of a span without its children, by phase: preparing, queueing, connecting, waiting to retry.",
        empty="Empty while no such phase has ended in the time range.",
        unit="s",
        kind="lines",
        queries=[
            Query(
                expr=drawn(_OWN, "phase", 'phase=~"prompt_build|provider_queue|provider_connect|retry_wait"'),
                legend="{{phase}}",
            )
        ],
        width=18,
        height=6,
        by_phase=True,
    ),
)

MODELS = Board(
    uid="turntrace-models",
    title="Models",
    means="Model calls: how many, how fast, how many tokens, and what was sent again.",
    variables=("service", "agent", "model"),
    panels=(*_TOTALS, *_PER_MODEL),
)
