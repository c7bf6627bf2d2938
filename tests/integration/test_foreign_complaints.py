"""Complaints about spans of other libraries: callbacks in any task, spans that are not theirs to end."""

import asyncio
import contextvars
import threading

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import set_span_in_context

import turntrace as tt
from otel.fakes import AGENT, CHAT, TOOL
from recordings import Recorded


def in_task(step):
    """Run in a task of its own, with a context that knows nothing."""
    asyncio.run(_alone(step))


async def _alone(step):
    async def body():
        return step()

    await asyncio.create_task(body(), context=contextvars.Context())


def in_thread(step):
    """Run in a thread of its own."""
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()


@pytest.mark.parametrize("run", [in_task, in_thread])
def test_r09_callbacks_in_any_task_give_one_tree(tmp_path, run):
    """A graph, two calls, two tools, each start and end somewhere else: parents are as the ids say."""
    open_spans = {}
    attributes = {"graph": AGENT, "chat": CHAT, "tool": TOOL}

    with Recorded(tmp_path / "t.ndjson") as recorded:

        def start(key, parent=None):
            def body():
                context = set_span_in_context(open_spans[parent], Context()) if parent else Context()
                open_spans[key] = recorded.tracer().start_span(
                    key, context, attributes=attributes[key.rstrip("12")]
                )

            run(body)

        def end(key):
            run(open_spans[key].end)

        start("graph")
        for number in "12":
            start(f"chat{number}", "graph")
            start(f"tool{number}", f"chat{number}" if number == "2" else "graph")
            end(f"tool{number}")
            end(f"chat{number}")
        end("graph")
    (block,) = recorded.blocks()
    ids = {name: f"{span.get_span_context().span_id:016x}" for name, span in open_spans.items()}
    assert block.turn.span_id == ids["graph"]
    assert {span.name: span.parent_id for span in block.turn.spans} == {
        "chat1": ids["graph"],
        "tool1": ids["graph"],
        "chat2": ids["graph"],
        "tool2": ids["chat2"],
    }


def test_r34_a_span_of_the_callers_is_never_ended_or_renamed(tmp_path):
    """Around two calls and a tool of ours it goes on recording, as it was, and ends last."""
    with Recorded(tmp_path / "t.ndjson") as recorded:
        with recorded.tracer().start_as_current_span("mine", attributes={"a": 1}) as mine, tt.turn("a"):
            for step in (tt.generation(model="m"), tt.generation(model="m"), tt.tool("bash")):
                with step:
                    pass
                assert mine.is_recording()
                assert (mine.name, dict(mine.attributes)) == ("mine", {"a": 1})
        ended = [span.name for span in recorded.exporter.get_finished_spans()]
    assert ended[-1] == "mine"
    (span,) = [one for one in recorded.exporter.get_finished_spans() if one.name == "mine"]
    assert dict(span.attributes)["a"] == 1
    assert len(ended) == 5
