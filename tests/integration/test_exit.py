"""The end of a process: in time, with its own status, the file whole, and next to nothing said."""

import signal
import sys

import pytest

from integration.programs import run_code
from otlp_receiver import HttpReceiver, SilentServer, refused_endpoint
from turntrace.files.read import read_paths

TIMEOUT_S = 1.5
"""What TURNTRACE_EXIT_TIMEOUT is unless it is set."""


class Refused:
    """An address where nothing listens."""

    def __enter__(self):
        self.endpoint = refused_endpoint()
        return self

    def __exit__(self, *error):
        pass


ENDPOINTS = {"refused": Refused, "silent": SilentServer, "503": lambda: HttpReceiver(status=503)}

QUEUE = """
import sys
import turntrace as tt
tt.configure(trace={out!r})
with tt.turn("a"):
    for number in range({spans} - 1):
        with tt.phase("tool_planning"):
            pass
print_last()
sys.exit(3)
"""


@pytest.fixture(scope="module")
def bare_exit_s():
    """How long this machine takes to end such a process when nothing is recorded."""
    code = "import sys\nimport turntrace.otel.setup\nprint_last()\nsys.exit(3)"
    return max(run_code(code).exit_s for _ in range(3))


def spans_in(out):
    """Every span of the file, the turns' roots counted."""
    turns = read_paths([str(out)], strict=True).turns
    assert [turn.status for turn in turns] == ["ok"]
    return sum(len(turn.spans) + 1 for turn in turns)


@pytest.mark.parametrize("spans", [1, 2_500, 6_000])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_complaint_19_exit_takes_its_time_and_not_more_when_the_collector_is_down(
    tmp_path, endpoint, protocol, spans, bare_exit_s
):
    """A dead endpoint costs at most the exit timeout; status and file are as if it were alive."""
    out = tmp_path / "t.ndjson"
    with ENDPOINTS[endpoint]() as server:
        ended = run_code(
            QUEUE.format(out=str(out), spans=spans),
            OTEL_EXPORTER_OTLP_ENDPOINT=server.endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        )
    assert ended.status == 3
    assert len(ended.err.splitlines()) <= 1, ended.err
    assert "Traceback" not in ended.err
    assert spans_in(out) == spans
    assert ended.exit_s - bare_exit_s <= TIMEOUT_S + 0.5
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_the_exit_timeout_is_a_setting(tmp_path):
    """TURNTRACE_EXIT_TIMEOUT=0 waits for nobody."""
    with SilentServer() as server:
        ended = run_code(
            QUEUE.format(out=str(tmp_path / "t.ndjson"), spans=10),
            OTEL_EXPORTER_OTLP_ENDPOINT=server.endpoint,
            TURNTRACE_EXIT_TIMEOUT=0,
        )
    assert ended.exit_s <= 0.5
    assert spans_in(tmp_path / "t.ndjson") == 10


def test_complaint_20_without_an_endpoint_there_is_no_exporter_and_no_word(tmp_path):
    """Nobody asked for an export, so nothing is loaded for it and nothing is said."""
    code = QUEUE.format(out=str(tmp_path / "t.ndjson"), spans=10).replace(
        "print_last()", "print([name for name in sys.modules if 'exporter.otlp' in name or name == 'grpc'])"
    )
    ended = run_code(code)
    assert (ended.status, ended.out, ended.err) == (3, "[]\n", "")


INTERRUPTED = """
import asyncio, sys
{configure}
import turntrace as tt
async def main():
    async with tt.turn("a"):
        async with tt.tool("slow"):
            print("READY", flush=True)
            await asyncio.sleep(30)
{run}
"""


@pytest.mark.parametrize(
    "run",
    [
        "asyncio.run(main())",
        "try:\n    asyncio.run(main())\nexcept KeyboardInterrupt:\n    sys.exit(130)",
    ],
)
def test_ctrl_c_in_asyncio_is_what_it_is_without_turntrace(tmp_path, run):
    """KeyboardInterrupt arrives, the status and the traceback are the same, the turn is cancelled."""
    out = tmp_path / "t.ndjson"
    configure = f"import turntrace; turntrace.configure(trace={str(out)!r})"
    bare = run_code(INTERRUPTED.format(configure="", run=run), signal_at="READY")
    traced = run_code(INTERRUPTED.format(configure=configure, run=run), signal_at="READY")
    assert traced.status == bare.status
    last = [ended.err.splitlines()[-1:] for ended in (bare, traced)]
    assert last[0] == last[1]
    assert ("Traceback" in traced.err) == ("Traceback" in bare.err)
    assert traced.exit_s < 2
    (turn,) = read_paths([str(out)], strict=True).turns
    assert turn.status == "cancelled"
    assert [(span.tool, span.outcome) for span in turn.spans] == [("slow", "cancelled")]


WAITING = """
import time
import turntrace as tt
tt.configure(trace={out!r}, journal="sync", flush_on_sigterm={flush})
with tt.turn("a"):
    with tt.tool("done"):
        pass
    print("READY", flush=True)
    time.sleep(30)
"""


@pytest.mark.parametrize("flush", [False, True])
def test_sigterm_kills_at_once_and_with_its_own_status(tmp_path, flush):
    """Dying of SIGTERM is what it was; with flush_on_sigterm the block is written first."""
    out = tmp_path / "t.ndjson"
    ended = run_code(WAITING.format(out=str(out), flush=flush), signal_at="READY", number=signal.SIGTERM)
    assert (ended.status, ended.err) == (-signal.SIGTERM, "")
    assert ended.exit_s < (1.0 if flush else 0.5)
    assert bool(out.read_bytes()) is flush
    (turn,) = read_paths([str(out)]).turns
    assert turn.status == "interrupted"
    assert [span.tool for span in turn.spans] == ["done"]


def test_flush_on_sigterm_is_bounded_when_the_collector_is_down(tmp_path):
    """Death is delayed by at most the exit timeout."""
    with SilentServer() as server:
        ended = run_code(
            WAITING.format(out=str(tmp_path / "t.ndjson"), flush=True),
            signal_at="READY",
            number=signal.SIGTERM,
            OTEL_EXPORTER_OTLP_ENDPOINT=server.endpoint,
        )
    assert ended.status == -signal.SIGTERM
    assert ended.exit_s < TIMEOUT_S + 0.5


ENDS = {
    "sys.exit()": 0,
    "sys.exit(0)": 0,
    "sys.exit(41)": 41,
    "sys.exit('why')": 1,
    "raise SystemExit(5)": 5,
    "1 / 0": 1,
    "pass": 0,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("inside", [True, False])
def test_a_process_ends_with_its_own_status_and_words(tmp_path, end, inside):
    """sys.exit, an exception nobody catches and the end of the code are left alone, in a turn and after it."""
    out = tmp_path / "t.ndjson"
    template = 'import sys\n{configure}\nimport turntrace as tt\nwith tt.turn("a"):\n    {first}\n{second}\n'
    first, second = (end, "pass") if inside else ("pass", end)
    traced = f"import turntrace; turntrace.configure(trace={str(out)!r})"
    bare = run_code(template.format(configure="pass", first=first, second=second))
    ended = run_code(template.format(configure=traced, first=first, second=second))
    assert ended.status == bare.status == ENDS[end]
    assert ended.out == bare.out
    assert ended.err.splitlines()[-1:] == bare.err.splitlines()[-1:]
    assert [line for line in ended.err.splitlines() if "turntrace:" in line] == []
    (turn,) = read_paths([str(out)], strict=True).turns
    wanted = {"1 / 0": "error", "pass": "ok"}.get(end, "cancelled") if inside else "ok"
    assert turn.status == wanted


def test_r31_an_interrupted_turn_can_be_told_from_a_finished_one(tmp_path):
    """KeyboardInterrupt with four open spans, none of which its code closes: they are listed as incomplete."""
    out = tmp_path / "t.ndjson"
    ended = run_code(
        f"""
import turntrace as tt
tt.configure(trace={str(out)!r})
held = [tt.turn("a"), tt.tool("x"), tt.phase("process_wait"), tt.tool("y"), tt.phase("tool_queue")]
for block in held:
    block.__enter__()
raise KeyboardInterrupt
"""
    )
    assert ended.status in {-signal.SIGINT, 130}
    (turn,) = read_paths([str(out)], strict=True).turns
    assert turn.status == "interrupted"
    assert turn.completed_ns is None
    assert [span.outcome for span in turn.spans] == ["incomplete"] * 4


def test_r02_a_processor_beside_a_pool_of_others_flushes_at_exit(tmp_path):
    """Ten spans through a ConcurrentMultiSpanProcessor that nobody shuts down: all in the file, in time."""
    out = tmp_path / "t.ndjson"
    ended = run_code(
        f"""
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, TracerProvider
import turntrace as tt
provider = TracerProvider(active_span_processor=ConcurrentMultiSpanProcessor(2), shutdown_on_exit=False)
tt.attach(provider, trace={str(out)!r})
tracer = provider.get_tracer("app")
with tracer.start_as_current_span("invoke_agent a", attributes={{"gen_ai.operation.name": "invoke_agent"}}):
    for number in range(9):
        with tracer.start_as_current_span("chat m", attributes={{"gen_ai.operation.name": "chat"}}):
            pass
print_last()
"""
    )
    assert (ended.status, ended.err) == (0, "")
    assert ended.exit_s < 5
    assert spans_in(out) == 10


def test_complaint_18_a_signal_that_kills_needs_no_handler_of_ours(tmp_path):
    """Configuring installs no signal handler."""
    ended = run_code(
        f"""
import signal
import turntrace as tt
numbers = [number for number in signal.valid_signals() if number not in {{signal.SIGKILL, signal.SIGSTOP}}]
before = [signal.getsignal(number) for number in numbers]
tt.configure(trace={str(tmp_path / "t.ndjson")!r})
with tt.turn("a"):
    pass
print(before == [signal.getsignal(number) for number in numbers])
"""
    )
    assert ended.out == "True\n"


if sys.platform == "win32":  # POSIX signals and exit statuses
    pytestmark = pytest.mark.skip(reason="statuses and signals here are those of POSIX")
