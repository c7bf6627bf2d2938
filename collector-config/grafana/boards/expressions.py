"""PromQL for the panels, made of the table of metrics: names that do not exist cannot be written."""

from turntrace.core.metric_table import METRICS, prometheus_name

__all__ = [
    "alive",
    "at_least_20",
    "drawn",
    "mean",
    "quantile",
    "rate",
    "ratio",
    "selector",
    "total",
    "zero_if",
]

RANGE = "$__range"
STEP = "$__rate_interval"
RECENT = "15m"
"""The window of a quantile that is drawn over time: long enough that it has something to stand on."""

_VARIABLES = {"agent": "$agent", "model": "$model"}


def selector(name: str, suffix: str = "", where: str = "", *, by_model: bool = False) -> str:
    """The series of a metric that the variables choose, further narrowed by ``where``."""
    metric = METRICS[name]
    variables = {
        label: value
        for label, value in _VARIABLES.items()
        if label in metric.labels and (label != "model" or by_model)
    }
    matchers = ['job=~"$service"', *(f'{label}=~"{value}"' for label, value in variables.items())]
    return f"{prometheus_name(metric)}{suffix}{{{', '.join([*matchers, *filter(None, [where])])}}}"


def total(
    name: str, by: str = "", where: str = "", *, part: str = "", window: str = RANGE, model: bool = False
) -> str:
    """How much a counter, or ``part`` of a histogram (_sum, _count), grew in the window."""
    return f"{_sum(by)}(increase({selector(name, part, where, by_model=model)}[{window}]))"


def rate(name: str, by: str = "", where: str = "", *, part: str = "", model: bool = False) -> str:
    """How much a counter grows a second."""
    return f"{_sum(by)}(rate({selector(name, part, where, by_model=model)}[{STEP}]))"


def ratio(part: str, whole: str) -> str:
    """Part by whole; nothing, instead of 0 by 0, where the whole is 0."""
    return f"{part} / ({whole} > 0)"


def zero_if(expression: str, known: str) -> str:
    """``expression``, or 0 where it is empty although ``known`` is there: nothing of the kind happened."""
    return f"({expression} or 0 * {known})"


def mean(name: str, by: str = "", where: str = "", *, window: str = RANGE, model: bool = False) -> str:
    """The mean of what a histogram measured in the window."""
    return ratio(
        total(name, by, where, part="_sum", window=window, model=model),
        total(name, by, where, part="_count", window=window, model=model),
    )


def quantile(
    share: float, name: str, by: str = "", where: str = "", *, window: str = RANGE, model: bool = False
) -> str:
    """A quantile of what a histogram measured, where it measured twenty times and more."""
    labels = ", ".join(filter(None, [by, "le"]))
    buckets = total(name, labels, where, part="_bucket", window=window, model=model)
    return at_least_20(
        f"histogram_quantile({share}, {buckets})",
        total(name, by, where, part="_count", window=window, model=model),
        by,
    )


def at_least_20(expression: str, count: str, by: str = "") -> str:
    """``expression`` where ``count`` is 20 or more; of fewer a high quantile is the maximum."""
    return f"{expression} and on ({by}) ({count} >= 20)"


def alive(name: str) -> str:
    """The series of a live metric, without those of processes that died while a turn ran.

    What a process sent last stays in the collector; a turn that runs gets older.
    """
    oldest = selector("turntrace.turn.oldest")
    dead = f"{oldest} > 0 and {oldest} == {oldest} offset 5m"
    return f"({selector(name)} unless on (job, instance, agent) ({dead}))"


def drawn(name: str, by: str = "", where: str = "") -> str:
    """The mean over time, for a line."""
    return mean(name, by, where, window=STEP)


def _sum(by: str) -> str:
    return f"sum by ({by}) " if by else "sum"
