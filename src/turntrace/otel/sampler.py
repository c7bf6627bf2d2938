"""Sampling that does not empty the file: what a sampler drops is still recorded, but not exported."""

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

__all__ = ["RecordingSampler"]


class RecordingSampler(Sampler):
    """Asks another sampler and turns DROP into RECORD_ONLY: processors see the span, exporters do not."""

    def __init__(self, asked: Sampler) -> None:
        self._asked = asked

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
        result = self._asked.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is not Decision.DROP:
            return result
        return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)

    def get_description(self) -> str:
        """The description of the sampler that is asked."""
        return f"RecordingSampler({self._asked.get_description()})"
