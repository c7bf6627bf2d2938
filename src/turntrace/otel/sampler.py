"""Sampling that does not empty the file: what a sampler drops is still recorded, but not exported."""

import re
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

__all__ = ["RecordingSampler", "keeps_children"]

_KEEPS: Final = re.compile(r",localParentSampled:AlwaysOnSampler,localParentNotSampled:\w+\}$")


class RecordingSampler(Sampler):
    """Asks another sampler and turns DROP into RECORD_ONLY: processors see the span, exporters do not."""

    def __init__(self, asked: Sampler) -> None:
        self.asked = asked

    def should_sample(  # noqa: PLR0913, PLR0917 - the SDK's signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The decision for one span; never DROP."""
        result = self.asked.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is not Decision.DROP:
            return result
        return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)

    def get_description(self) -> str:
        """The description of the sampler that is asked."""
        return f"RecordingSampler({self.asked.get_description()})"


def keeps_children(sampler: Sampler) -> bool:
    """Whether every child of a sampled span of this process is sampled, with its attributes as they are.

    >>> from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
    >>> (
    ...     keeps_children(RecordingSampler(ParentBased(ALWAYS_ON))),
    ...     keeps_children(ParentBased(ALWAYS_ON, local_parent_sampled=ALWAYS_OFF)),
    ... )
    (True, False)
    """
    if type(sampler) is RecordingSampler:
        return keeps_children(sampler.asked)
    if sampler is ALWAYS_ON:
        return True
    asks_parent = (
        isinstance(sampler, ParentBased) and type(sampler).should_sample is ParentBased.should_sample
    )
    return asks_parent and _KEEPS.search(sampler.get_description()) is not None
