"""Nothing of what an agent says leaves the process: a canary in every place that could carry it."""

import pytest

from integration.programs import run_code
from otlp_receiver import GrpcReceiver, HttpReceiver

CANARY = "canary-7f3a9c"

AGENT = """
import asyncio, sys, time
import turntrace as tt
from opentelemetry import baggage, context, trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

CANARY = "canary-" + "7f3a9c"
sys.orig_argv.append(CANARY)
sys.argv.append(CANARY)
handle = tt.configure({arguments})
bare = trace.get_tracer("app").start_span("linking", links=[
    Link(SpanContext(1, 2, False), {{"a": CANARY}})])
bare.end()
tracer = trace.get_tracer("app")
context.attach(baggage.set_baggage("user", CANARY))

FOREIGN = {{
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": CANARY,
    "gen_ai.output.messages": CANARY,
    "gen_ai.system_instructions": CANARY,
    "gen_ai.tool.definitions": CANARY,
    "gen_ai.prompt.0.content": CANARY,
    "gen_ai.completion.0.content": CANARY,
    "input.value": CANARY,
    "output.value": CANARY,
    "llm.input_messages.0.message.content": CANARY,
    "http.request.header.authorization": [CANARY],
    "url.full": f"https://example.test/{{CANARY}}",
    "url.query": CANARY,
    "db.query.text": CANARY,
    "linked": CANARY,
    "exception.message": CANARY,
    "process.command_line": CANARY,
    "code.file.path": CANARY,
    CANARY: 1,
}}

class Broken:
    def __str__(self):
        return CANARY

def foreign(name, kind=SpanKind.INTERNAL, **more):
    link = Link(SpanContext(1, 2, False), {{"a": CANARY}})
    span = tracer.start_span(name, kind=kind, attributes={{**FOREIGN, **more}}, links=[link])
    span.add_event("gen_ai.content.prompt", {{"gen_ai.prompt": CANARY}})
    span.record_exception(ValueError(CANARY))
    span.set_status(Status(StatusCode.ERROR, CANARY))
    return span

def fail():
    raise ValueError(CANARY)

def swallow(block):
    try:
        with block:
            fail()
    except ValueError:
        pass

@tt.tool.wrap()
def shell(command, *, secret):
    return command + secret

with tt.turn("agent", session_id="s1") as turn:
    with tt.generation(model="m", provider="p") as g:
        for chunk in g.stream(iter([{{"choices": [{{"delta": {{"content": CANARY}}}}]}}] * 3)):
            pass
        g.usage(input_tokens=1, output_tokens=1)
        g.set("gen_ai.input.messages", CANARY)
        g.set("anything", CANARY)
        with trace.use_span(foreign("POST", SpanKind.CLIENT, **{{"http.request.method": "POST"}}), end_on_exit=True):
            pass
    shell(CANARY, secret=CANARY)
    swallow(tt.tool("bash", call_id="c1", attributes={{"gen_ai.tool.call.arguments": CANARY,
                                                     "gen_ai.tool.call.result": CANARY}}))
    swallow(tt.phase("process_wait", attributes={{"process.command": CANARY}}))
    with trace.use_span(foreign("chat m"), end_on_exit=True):
        pass
    with trace.use_span(foreign("execute_tool bash", **{{"gen_ai.operation.name": "execute_tool",
                                                        "gen_ai.tool.name": "bash"}}), end_on_exit=True):
        pass
    tt.count("retry_count")
    tt.count(CANARY)
    tt.mark(CANARY)
    with tt.phase(CANARY):
        pass
    g.usage(canary=CANARY)
    turn.report()
swallow(tt.turn("agent"))
with trace.use_span(foreign("invoke_agent other", **{{"gen_ai.operation.name": "invoke_agent"}}), end_on_exit=True):
    with trace.use_span(foreign("chat m"), end_on_exit=True):
        pass
async def cancelled():
    async with tt.turn("agent"):
        async with tt.tool("slow"):
            await asyncio.sleep(60)
async def main():
    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0.01)
    task.cancel(CANARY)
    await asyncio.gather(task, return_exceptions=True)
asyncio.run(main())
live = tt.turn("agent")
live.__enter__()
foreign("never ended")
{look}
"""

LOOK = """
time.sleep(0.3)
handle.processor.recording.writer.drain()
import glob, os
for path in sorted(glob.glob(glob.escape({folder!r}) + "/*")):
    with open(path, "rb") as file:
        if CANARY.encode() in file.read():
            print("found in", os.path.basename(path))
print("journals", len(glob.glob(glob.escape({folder!r}) + "/*.part")))
"""


def run_agent(tmp_path, journal, more="", **variables):
    """Run the agent; what it printed, which says where the canary was while turns were live."""
    arguments = f"trace={str(tmp_path / 't.ndjson')!r}, journal={journal!r}, metrics=True{more}"
    code = AGENT.format(arguments=arguments, look=LOOK.format(folder=str(tmp_path)))
    return run_code(
        code,
        OTEL_METRIC_EXPORT_INTERVAL="100",
        OTEL_EXPERIMENTAL_RESOURCE_DETECTORS="process,otel",
        **variables,
    )


def whole(requests):
    """Every byte of what arrived."""
    return b"".join(request.SerializeToString() for request in requests)


@pytest.mark.parametrize("journal", ["sync", "thread"])
@pytest.mark.parametrize(
    ("make", "protocol"), [(HttpReceiver, "http/protobuf"), (GrpcReceiver, "grpc")], ids=["http", "grpc"]
)
def test_a_canary_is_in_no_byte_that_leaves_the_process(tmp_path, make, protocol, journal):
    """File, journals, metrics, stderr and OTLP carry no content of native or foreign spans."""
    with make() as receiver:
        ended = run_agent(
            tmp_path,
            journal,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        )
        traces, metrics = whole(receiver.traces), whole(receiver.metrics)
        names = {span.name for _, _, span in receiver.spans()}
    assert ended.status == 0
    assert ended.err == ""
    assert ended.out == "journals 1\n" if journal == "thread" else "journals 2\n"
    assert {"chat m", "execute_tool bash", "invoke_agent agent", "POST"} <= names
    assert b"turntrace.turn.duration" in metrics
    for data in (traces, metrics, *(path.read_bytes() for path in tmp_path.iterdir())):
        assert CANARY.encode() not in data


def test_with_content_keep_foreign_attributes_arrive(tmp_path):
    """Who asks for content gets it over OTLP; the file stays free of it."""
    with HttpReceiver() as receiver:
        ended = run_agent(tmp_path, "sync", ", content='keep'", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        spans = [span for _, _, span in receiver.spans() if span.name == "execute_tool bash"]
    assert (ended.status, ended.err) == (0, "")
    kept = {a.key: a.value.string_value for span in spans for a in span.attributes}
    assert kept["gen_ai.input.messages"] == CANARY
    assert kept["input.value"] == CANARY
    assert any(span.status.message == CANARY for span in spans)
    assert any(event.name == "exception" for span in spans for event in span.events)
    for path in tmp_path.iterdir():
        assert CANARY.encode() not in path.read_bytes()


@pytest.mark.parametrize("value", ["true", "SPAN_ONLY", "span_and_event"])
def test_the_conventions_variable_asks_for_content_too(tmp_path, value):
    """OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is the same wish, said by the environment."""
    with HttpReceiver() as receiver:
        ended = run_agent(
            tmp_path,
            "sync",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=value,
        )
        traces = whole(receiver.traces)
    assert (ended.status, ended.err) == (0, "")
    assert CANARY.encode() in traces


def test_an_attribute_that_the_user_names_is_let_through(tmp_path):
    """TURNTRACE_KEEP_ATTRIBUTES adds to the allow-list, in the file and over OTLP, and nothing else."""
    with HttpReceiver() as receiver:
        ended = run_agent(
            tmp_path,
            "sync",
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
            TURNTRACE_KEEP_ATTRIBUTES="input.value",
        )
        attributes = [a for _, _, span in receiver.spans() for a in span.attributes]
    assert ended.status == 0
    assert {a.key for a in attributes if a.value.string_value == CANARY} == {"input.value"}
    assert f'"input.value":"{CANARY}"'.encode() in (tmp_path / "t.ndjson").read_bytes()
