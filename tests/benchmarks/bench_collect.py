"""How much ``turntrace collect`` takes: four senders, requests encoded before, 20,000 spans a second together.

Each span has ten attributes; ten of them are a turn. ``python tests/benchmarks/bench_collect.py 60`` runs for
60 s, ``make bench`` for 10 s. Every acknowledged span must be in a turn of the file at the end.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["run"]

_SENDERS = 4
_SPANS_A_SECOND = 20_000
_TURNS_A_REQUEST = 50
_SPANS_A_TURN = 10
_SPANS_A_REQUEST = _TURNS_A_REQUEST * _SPANS_A_TURN
_MARK = b"\xfe\xedTRACE\x01"
_T0_NS = 1_700_000_000_000_000_000
_HEADERS = {"Content-Type": "application/x-protobuf"}


def _request() -> bytes:
    """A request whose trace ids start with a mark, to be replaced by what makes them others each time."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope = resource.scope_spans.add()
    for turn in range(_TURNS_A_REQUEST):
        for number in range(_SPANS_A_TURN, 0, -1):
            is_root, is_tool = number == 1, number % 2 == 1
            operation = "invoke_agent" if is_root else "execute_tool" if is_tool else "chat"
            span = scope.spans.add(
                trace_id=_MARK + turn.to_bytes(8, "big"),
                span_id=(turn * 100 + number).to_bytes(8, "big"),
                parent_span_id=b"" if is_root else (turn * 100 + 1).to_bytes(8, "big"),
                name=f"{operation} x",
                start_time_unix_nano=_T0_NS + (0 if is_root else number * 1_000_000),
                end_time_unix_nano=_T0_NS + (20_000_000 if is_root else number * 1_000_000 + 900_000),
            )
            span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
            span.attributes.add(key="gen_ai.request.model").value.string_value = "gpt-demo"
            span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 1000
            span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 100
            for index in range(6):
                span.attributes.add(key=f"app.attribute.{index}").value.string_value = "some value"
    return request.SerializeToString()


def send(port: int, sender: int, seconds: float) -> None:
    """Send at this sender's part of the rate and print what was acknowledged, and the slowest answer."""
    body = _request()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    every_s = _SPANS_A_REQUEST * _SENDERS / _SPANS_A_SECOND
    start_s = time.monotonic() + 0.1
    acknowledged, waits = 0, []
    for number in range(int(seconds / every_s)):
        time.sleep(max(0.0, start_s + number * every_s - time.monotonic()))
        fresh = body.replace(_MARK, bytes([sender + 1]) + number.to_bytes(7, "big"))
        asked_s = time.monotonic()
        connection.request("POST", "/v1/traces", fresh, _HEADERS)
        answer = connection.getresponse()
        answer.read()
        waits.append(time.monotonic() - asked_s)
        acknowledged += (answer.status == 200) * _SPANS_A_REQUEST
    spent_s = time.monotonic() - start_s
    waits.sort()
    print(json.dumps({"spans": acknowledged, "s": spent_s, "p99_s": waits[int(len(waits) * 0.99)]}))


def _rss_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Watch:
    """Notes the memory of the two processes while the senders run."""

    def __init__(self, pids: tuple[int, int]) -> None:
        self.seen: list[tuple[float, float]] = []
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self.seen.append((_rss_mb(self._pids[0]), _rss_mb(self._pids[1])))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def growth_mb(self) -> float:
        """How much both grew together from the second quarter of the time to the last."""
        quarter = max(1, len(self.seen) // 4)
        early = sum(map(sum, self.seen[quarter : 2 * quarter])) / quarter
        late = sum(map(sum, self.seen[-quarter:])) / quarter
        return late - early


def measure(seconds: float) -> dict[str, float]:
    """One run; see the keys."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            Path(sys.executable).parent / "turntrace",
            "collect",
            "--http",
            "0",
            "--trace",
            "out.ndjson",
        ]
        service = subprocess.Popen(
            [*command, "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        port = int(re.findall(r":(\d+)", service.stderr.readline())[-1])
        worker = int(Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()[0])
        arguments = [sys.executable, __file__, "--send", str(port)]
        with _Watch((service.pid, worker)) as watch:
            senders = [
                subprocess.Popen([*arguments, str(number), str(seconds)], stdout=subprocess.PIPE, text=True)
                for number in range(_SENDERS)
            ]
            told = [json.loads(sender.communicate()[0]) for sender in senders]
        sent_cpu_s, worker_cpu_s = _cpu_s(service.pid), _cpu_s(worker)
        ended_s = time.monotonic()
        service.send_signal(signal.SIGTERM)
        result = json.loads(service.communicate(timeout=1200)[0])
        drained_s = time.monotonic() - ended_s
    acknowledged = sum(one["spans"] for one in told)
    return {
        "spans a second": acknowledged / max(one["s"] for one in told),
        "spans acknowledged": acknowledged,
        "spans lost": acknowledged - result["made"]["turns"] * _SPANS_A_TURN,
        "p99 ms": max(one["p99_s"] for one in told) * 1000,
        "receiver CPU us a span": sent_cpu_s / acknowledged * 1e6,
        "worker CPU s": worker_cpu_s,
        "s until all are turns": drained_s,
        "turn spans a second": acknowledged / (seconds + drained_s),
        "growth MB": watch.growth_mb(),
        "receiver MB": max(one for one, _ in watch.seen),
        "worker MB": max(one for _, one in watch.seen),
    }


def run(rounds: int) -> list[tuple[str, str, float, float]]:
    """Goal id, what, figure and bound; of the rate, what is missing to the goal."""
    del rounds
    found = measure(10)
    return [
        (
            "-",
            "collect: 20,000 / spans acknowledged a second",
            _SPANS_A_SECOND / found["spans a second"],
            1.02,
        ),
        ("-", "collect: acknowledged spans that are in no turn", found["spans lost"], 0.5),
        ("-", "collect: P99 of an answer to 500 spans, ms", found["p99 ms"], 0.0),
        ("-", "collect: receiver's CPU a span, us", found["receiver CPU us a span"], 0.0),
        ("-", "collect: spans that become turns a second", found["turn spans a second"], 0.0),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--send"]:
        send(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        for name, figure in measure(float(sys.argv[1]) if sys.argv[1:] else 60.0).items():
            print(f"{name}: {figure:,.1f}")
