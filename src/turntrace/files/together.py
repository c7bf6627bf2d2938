"""Reads several files of one recording as one input: what a receiver kept by signal and by encoding."""

from collections.abc import Container, Sequence
from pathlib import Path

from turntrace.core.turns import assemble
from turntrace.errors import TraceReadError
from turntrace.files.documents import MAX_DOCUMENT_BYTES
from turntrace.files.foreign import is_text, read_binary, read_json
from turntrace.files.raw_spans import RawSpans
from turntrace.files.read_result import ReadResult
from turntrace.files.source import bounded_lines, plain

__all__ = ["read_together"]


def read_together(
    paths: Sequence[str],
    *,
    whole_run: bool = False,
    known: Container[tuple[str, str]] = (),
) -> ReadResult:
    """The turns of files of other tools that tell of the same processes, spans, log events and counters.

    Args:
        paths: OTLP as JSON lines or protobuf, or Jaeger's JSON; compressed or not.
        whole_run: all of it is of one process and its children: roots are joined to one turn.
        known: trace and span ids of spans that are recorded already; they are left out.

    Raises:
        TraceReadError: when a path cannot be opened.
    """
    spans = RawSpans()
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                source, head = plain(file, lambda what: spans.issue("truncated_tail", what, None, None))
                if is_text(head):
                    read_json(bounded_lines(source, MAX_DOCUMENT_BYTES), spans)
                else:
                    read_binary(source, head, spans)
        except OSError as error:
            raise TraceReadError(error.strerror or str(error), path=path) from error
    new = [span for span in spans.spans if (span.trace_id, span.span_id) not in known]
    turns = assemble(new, events=spans.events, points=spans.points, whole_run=whole_run)
    told = ", ".join(paths)
    return ReadResult(turns=turns, issues=[(told, issue) for issue in spans.issues])
