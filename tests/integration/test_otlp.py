"""What arrives over OTLP: by either protocol, once, with the same ids and times as the file."""

import contextlib
import socket

import pytest

from integration.programs import run_code
from otlp_receiver import GrpcReceiver, HttpReceiver, attributes_of
from turntrace.core.attribution import attribute
from turntrace.files.read import read_paths

AGENT = """
import turntrace as tt
{configure}
from opentelemetry import trace
foreign = trace.get_tracer("opentelemetry.instrumentation.httpx")
for number in range(3):
    with tt.turn("a", session_id="s"):
        with tt.phase("prompt_build"):
            pass
        with tt.generation(model="m", provider="openai") as g:
            with foreign.start_as_current_span("POST", kind=trace.SpanKind.CLIENT) as span:
                span.set_attribute("http.request.method", "POST")
            with tt.phase("retry_wait"):
                pass
            g.usage(input_tokens=10, output_tokens=2)
        with tt.tool("bash"), tt.phase("process_wait"):
            pass
        with foreign.start_as_current_span("helper"):
            with tt.tool("inner"):
                pass
"""


def check_same(out, arrived):
    """Ids, parents and exclusive times over OTLP are the file's; wall shares sum to the duration."""
    spans = {span.span_id.hex(): span for _, _, span in arrived}
    assert len(spans) == len(arrived), "a span arrived twice"
    turns = read_paths([str(out)], strict=True).turns
    assert len(turns) == 3
    seen = set()
    for turn in turns:
        result = attribute(
            turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
        )
        for times in result.spans:
            sent = spans[times.span.span_id]
            attributes = attributes_of(sent)
            assert sent.parent_span_id.hex() == times.span.parent_id
            assert sent.trace_id.hex() == turn.trace_id
            assert attributes["turntrace.exclusive_ms"] == pytest.approx(times.exclusive_ns / 1e6, abs=0.001)
            assert (sent.start_time_unix_nano, sent.end_time_unix_nano) == (
                times.span.start_ns,
                times.span.end_ns,
            )
        root = spans[turn.span_id]
        wall = [v for k, v in attributes_of(root).items() if k.startswith("turntrace.wall.")]
        assert sum(wall) == pytest.approx((root.end_time_unix_nano - root.start_time_unix_nano) / 1e6)
        seen |= {turn.span_id, *(span.span_id for span in turn.spans)}
    assert seen == set(spans)


def at_port(make, port):
    """A receiver at a well-known port; skips where something else has it."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.skip(f"something listens on port {port} here")
    return make(port=port)


@pytest.mark.parametrize(
    ("make", "port", "protocol"),
    [
        (GrpcReceiver, 4317, None),
        (GrpcReceiver, 4317, "grpc"),
        (HttpReceiver, 4318, None),
        (HttpReceiver, 4318, "http/protobuf"),
        (HttpReceiver, 4317, "http/protobuf"),
        (GrpcReceiver, 4318, "grpc"),
        (HttpReceiver, 0, None),
    ],
)
def test_the_protocol_is_the_one_asked_for_else_the_ports(tmp_path, make, port, protocol):
    """Spans arrive by grpc at 4317 and by http/protobuf elsewhere, unless the variable says otherwise."""
    out = tmp_path / "t.ndjson"
    chosen = {} if protocol is None else {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    with at_port(make, port) as receiver:
        ended = run_code(
            AGENT.format(configure=f"tt.configure(trace={str(out)!r})"),
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint if port == 0 else f"http://127.0.0.1:{port}",
            **chosen,
        )
        assert (ended.status, ended.err) == (0, "")
        check_same(out, receiver.spans())


@pytest.mark.parametrize("signal", ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "endpoint"])
def test_an_endpoint_for_traces_alone_is_taken_as_it_is(tmp_path, signal):
    """The variable for traces is a whole URL, the argument of configure() a base like the common variable."""
    out = tmp_path / "t.ndjson"
    with HttpReceiver() as receiver:
        if signal == "endpoint":
            configure, variables = f"tt.configure(trace={str(out)!r}, endpoint={receiver.endpoint!r})", {}
        else:
            configure = f"tt.configure(trace={str(out)!r})"
            variables = {signal: f"{receiver.endpoint}/v1/traces"}
        ended = run_code(AGENT.format(configure=configure), **variables)
        assert (ended.status, ended.err) == (0, "")
        check_same(out, receiver.spans())


EXISTING = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor({exporter}))
trace.set_tracer_provider(provider)
calls = []
trace.set_tracer_provider = lambda *arguments: calls.append(arguments)
"""


@pytest.mark.parametrize(
    "way",
    [
        "tt.attach(provider, trace={out!r})",
        "tt.configure(trace={out!r})",
        "tt.configure(trace={out!r}, endpoint={endpoint!r})",
    ],
)
@pytest.mark.parametrize("exporter", ["OTLPSpanExporter()", "tt.wrap(OTLPSpanExporter())"])
def test_complaint_35_with_a_provider_present_every_span_arrives_exactly_once(tmp_path, way, exporter):
    """Our processor is added, no provider is set, and the same endpoint gets each span id once."""
    out = tmp_path / "t.ndjson"
    with HttpReceiver() as receiver:
        configure = EXISTING.format(exporter=exporter) + way.format(out=str(out), endpoint=receiver.endpoint)
        code = AGENT.format(configure=configure) + "\nprint(calls, trace.get_tracer_provider() is provider)"
        ended = run_code(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        assert (ended.status, ended.out, ended.err) == (0, "[] True\n", "")
        ids = [span.span_id.hex() for _, _, span in receiver.spans()]
        if "wrap" in exporter:
            check_same(out, receiver.spans())
    assert len(ids) == len(set(ids)) == 3 * 9
    turns = read_paths([str(out)], strict=True).turns
    assert set(ids) == {i for t in turns for i in (t.span_id, *(s.span_id for s in t.spans))}


AFTERWARDS = """
tt.configure(trace={out!r})
from opentelemetry import trace
early = trace.get_tracer("early")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
{exporter}
trace.set_tracer_provider(provider)
"""


@pytest.mark.parametrize("has_exporter", [True, False])
def test_an_agent_that_sets_a_provider_after_us_keeps_it_and_nothing_arrives_twice(tmp_path, has_exporter):
    """The agent's own provider wins; if it exports over OTLP itself, we export no more."""
    out = tmp_path / "t.ndjson"
    exporter = (
        "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter\n"
        "provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))"
    )
    with HttpReceiver() as receiver:
        code = AGENT.format(
            configure=AFTERWARDS.format(out=str(out), exporter=exporter if has_exporter else "")
        )
        code += "\nprint(trace.get_tracer_provider() is provider)"
        ended = run_code(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
        assert (ended.status, ended.out, ended.err) == (0, "True\n", "")
        ids = [span.span_id.hex() for _, _, span in receiver.spans()]
    assert len(ids) == len(set(ids)) == 3 * 9


def test_r54_file_and_endpoint_do_not_switch_each_other_off(tmp_path):
    """Both: both written. Only a file: no connection. Only a dead endpoint: no file, at most one line."""
    out = tmp_path / "t.ndjson"
    with HttpReceiver() as receiver:
        both = run_code(
            AGENT.format(configure=f"tt.configure(trace={str(out)!r})"),
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
        )
        assert (both.status, both.err) == (0, "")
        check_same(out, receiver.spans())
    watch = (
        "import sys\nseen = []\n"
        "sys.addaudithook(lambda name, args: seen.append(name) if name.startswith('socket.') else None)\n"
    )
    only_file = run_code(
        watch
        + AGENT.format(configure=f"tt.configure(trace={str(tmp_path / 'f.ndjson')!r})")
        + "\nprint(seen)"
    )
    assert (only_file.status, only_file.out, only_file.err) == (0, "[]\n", "")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    only_endpoint = run_code(
        f"import os\nos.chdir({str(tmp_path)!r})\n" + AGENT.format(configure="tt.configure()"),
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
    )
    assert only_endpoint.status == 0
    assert len(only_endpoint.err.splitlines()) == 1
    names = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")}
    assert names == {"t.ndjson", "f.ndjson"}
