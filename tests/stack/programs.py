"""Programs run with an endpoint set, as a person does, and what they wrote."""

import os
import subprocess
import sys

from turntrace.core.attribution import attribute
from turntrace.files.read import read_paths


def run(arguments, endpoint, service, protocol="http/protobuf", **variables):
    """Run a program with the endpoint set, as a person does."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNTRACE_"))}
    env |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_SERVICE_NAME": service,
        **variables,
    }
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=120, check=True
    )


def turns_of(out):
    """The turns of a file with where their time went."""
    return [
        (
            turn,
            attribute(
                turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
            ),
        )
        for turn in read_paths([str(out)], strict=True).turns
    ]
