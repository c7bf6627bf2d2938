"""OTEL_CONFIG_FILE: the exporter that wraps works where a file may name exporters and nothing else."""

import pytest

from integration.programs import run_code
from otlp_receiver import GrpcReceiver, HttpReceiver, attributes_of

FILE = """
file_format: "1.1"
resource:
  attributes:
    - {{name: service.name, value: shop}}
tracer_provider:
  processors:
    - batch:
        exporter:
          turntrace_otlp: {arguments}
"""
AGENT = """
from opentelemetry.instrumentation.auto_instrumentation import initialize
initialize()
from opentelemetry import trace
tracer = trace.get_tracer("app")
agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": "a secret"}
with tracer.start_as_current_span("invoke_agent a", attributes=agent):
    with tracer.start_as_current_span("chat m", attributes=chat):
        pass
trace.get_tracer_provider().shutdown()
"""


@pytest.mark.parametrize(
    ("make", "arguments", "content"),
    [
        (HttpReceiver, "{{endpoint: '{0}'}}", False),
        (HttpReceiver, "{{endpoint: '{0}/v1/traces', content: keep}}", True),
        (GrpcReceiver, "{{endpoint: '{0}', protocol: grpc}}", False),
        (HttpReceiver, "", False),
    ],
)
def test_a_configuration_file_names_the_wrapping_exporter(tmp_path, make, arguments, content):
    """Phase and exclusive time are on every span, provisional; the file's resource; content as it says."""
    path = tmp_path / "otel.yaml"
    with make() as receiver:
        path.write_text(FILE.format(arguments=arguments.format(receiver.endpoint)))
        variables = {} if arguments else {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
        ended = run_code(AGENT, OTEL_CONFIG_FILE=str(path), **variables)
        assert (ended.status, ended.err) == (0, "")
        spans = {
            span.name: (attributes_of(resource), attributes_of(span))
            for resource, _, span in receiver.spans()
        }
    assert spans.keys() == {"invoke_agent a", "chat m"}
    for resource, attributes in spans.values():
        assert resource["service.name"] == "shop"
        assert attributes["turntrace.exclusive_ms"] >= 0
        assert attributes["turntrace.exclusive_provisional"] is True
    assert spans["chat m"][1]["turntrace.phase"] == "generation"
    assert ("gen_ai.input.messages" in spans["chat m"][1]) is content
