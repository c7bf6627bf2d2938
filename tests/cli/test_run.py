"""`turntrace run`: the agent's turn is recorded, and the agent cannot tell."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import venv
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from cli.terminal import Terminal
from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import DEMO_SCRIPT
from turntrace.files.read import read_paths

RUN = [sys.executable, "-m", "turntrace", "run"]

TURN = """
    with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.input.messages": "secret"}
        with tracer.start_as_current_span("chat m-1", attributes=chat):
            pass
"""
API_ONLY = f"""
    import sys
    from opentelemetry import trace
    tracer = trace.get_tracer("agent")
    {TURN.strip()}
    print(*sys.argv[1:])
    print("told", file=sys.stderr)
    sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
"""


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """Write an agent in an empty working folder; return its file's name."""
    monkeypatch.chdir(tmp_path)

    def write(code, name="agent.py"):
        Path(name).write_text(textwrap.dedent(code))
        return name

    return write


def run(*arguments, python=sys.executable, **more):
    """Run a Python agent; the file is t.ndjson."""
    return start("--trace", "t.ndjson", "--", python, *arguments, **more)


def start(*arguments, env=None, **more):
    """Run with any arguments."""
    command = [*RUN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, **(env or {})}, **more)


def turns():
    """The turns of t.ndjson."""
    return read_paths(["t.ndjson"]).turns


def test_an_agent_that_knows_only_the_api_gives_a_turn(agent):
    """Its own output comes out byte for byte and its status is returned; the rest is said around it."""
    name = agent(API_ONLY)
    plain = subprocess.run([sys.executable, name, "3", "b"], capture_output=True, timeout=60)
    done = run(name, "3", "b")

    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (3, b"3 b\n")
    before, _, after = done.stderr.decode().partition(plain.stderr.decode())
    assert before == "turntrace: recording agent to t.ndjson; prompts and outputs left out\n"
    assert "WHERE THE TURN WENT" in after
    assert "t.ndjson" in after
    (turn,) = turns()
    assert (turn.agent, turn.model, [span.phase for span in turn.spans]) == ("bot", "m-1", ["generation"])
    assert b"secret" not in Path("t.ndjson").read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == ["agent.py", "t.ndjson", "t.ndjson.lock"]


OWN_PROVIDER = f"""
    import sys
    from opentelemetry import trace
    tracer = trace.get_tracer("early")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    provider = TracerProvider()
    exporter = ConsoleSpanExporter(formatter=lambda span: f"{{span.name}} {{sorted(span.attributes)}}\\n")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    print(trace.get_tracer_provider() is provider)
    {TURN.strip()}
"""


def test_an_agents_own_provider_keeps_its_spans_and_we_get_the_turn(agent):
    """The provider that the agent sets is the global one; its exporter sees what it saw without us."""
    name = agent(OWN_PROVIDER)
    plain = subprocess.run([sys.executable, name], capture_output=True, timeout=60)
    done = run(name)

    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert b"True\nchat m-1" in done.stdout
    (turn,) = turns()
    assert [span.phase for span in turn.spans] == ["generation"]


def test_model_calls_without_a_root_are_one_turn_of_the_run(agent):
    """Three root chat spans of one process are one turn, named by --agent, from the first start to the last end."""
    name = agent("""
        from opentelemetry import trace
        tracer = trace.get_tracer("agent")
        for _ in range(3):
            with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
                pass
            with tracer.start_as_current_span("plumbing"):
                pass
    """)
    start("--agent", "zed", "--trace", "t.ndjson", "--", sys.executable, name)
    [turn] = read_paths(["t.ndjson"]).turns
    assert (turn.turn_source, turn.agent, turn.status) == ("run", "zed", "ok")
    assert (turn.rounds, turn.counters["model_requests"], len(turn.spans)) == (3, 3, 6)
    assert turn.started_ns == min(span.start_ns for span in turn.spans)
    assert turn.completed_ns == max(span.end_ns for span in turn.spans)


def test_an_agents_own_configure_gives_way(agent):
    """An agent that configures turntrace itself is recorded where `run` was told to, and does not stop."""
    name = agent("""
        import turntrace as tt
        tt.configure("mine.ndjson", metrics=True)
        with tt.turn("mine"), tt.tool("x"):
            pass
    """)
    start("--trace", "t.ndjson", "--", sys.executable, name)
    [turn] = read_paths(["t.ndjson"]).turns
    assert turn.agent == "mine"
    assert not Path("mine.ndjson").exists()


def test_requests_and_output_are_the_same_bytes(agent):
    """The bundled agent sends the same bytes to its model and prints the same answer, traced or not."""
    code = "import sys; from turntrace.demo.agent import run_agent; run_agent(sys.argv[1], speed=20, print_answer=True)"
    name = agent(code)
    with ModelServer(DEMO_SCRIPT, speed=20, keep_requests=True) as server:
        plain = subprocess.run([sys.executable, name, server.base_url], capture_output=True, timeout=60)
        server.log.wait(5)
        done = run(name, server.base_url)
        records = server.log.wait(10)

    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert [record.request for record in records[5:]] == [record.request for record in records[:5]]
    (turn,) = turns()
    assert (turn.rounds, turn.counters["tool_calls"], turn.turn_source) == (4, 5, "api")


class Requests(BaseHTTPRequestHandler):
    """Keeps the head and body of each request."""

    def do_POST(self):
        """Answer with nothing."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, self.headers.items(), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture
def server():
    """An HTTP server on loopback; ``seen`` holds what came."""
    with HTTPServer(("127.0.0.1", 0), Requests) as listening:
        listening.seen = []
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


PROVIDER_CALL = """
    import socket, sys
    import httpx
    real = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *rest, **more: real("127.0.0.1", *rest, **more)
    for host in sys.argv[2:]:
        httpx.post(f"http://{host}:{sys.argv[1]}/v1", json={"a": 1}, trust_env=False)
"""


def test_trace_headers_stay_at_home(agent, server):
    """A model provider gets the bytes it would get untraced; loopback and named hosts get the headers."""
    name, port = agent(PROVIDER_CALL), server.server_port
    hosts = ["api.model.example", "tools.example", "localhost"]
    subprocess.run([sys.executable, name, str(port), *hosts], timeout=60, check=True)
    done = run(name, port, *hosts, env={"TURNTRACE_PROPAGATE_HOSTS": "tools.example"})

    assert done.returncode == 0
    assert server.seen[3] == server.seen[0]
    traced = [any(key.lower() == "traceparent" for key, _ in headers) for _, headers, _ in server.seen]
    assert traced == [False, False, False, False, True, True]


def test_spans_go_to_an_endpoint_too_without_content(agent, server):
    """With --endpoint each span arrives once, with phase, without prompts, under the agent's name."""
    url = f"http://127.0.0.1:{server.server_port}"
    done = start(
        "--trace", "t.ndjson", "--endpoint", url, "--agent", "my-bot", "--", sys.executable, agent(API_ONLY)
    )

    assert done.returncode == 0
    assert f"sending spans to {url} (http/protobuf)" in done.stderr.decode()
    assert {path for path, _, _ in server.seen} == {"/v1/traces"}
    resources = [
        one for _, _, body in server.seen for one in ExportTraceServiceRequest.FromString(body).resource_spans
    ]
    spans = [span for one in resources for scope in one.scope_spans for span in scope.spans]
    names = {pair.key: pair.value.string_value for pair in resources[0].resource.attributes}
    assert sorted(span.name for span in spans) == ["chat m-1", "invoke_agent bot"]
    assert names["service.name"] == "my-bot"
    keys = {pair.key for span in spans for pair in span.attributes}
    assert "turntrace.phase" in keys
    assert "gen_ai.input.messages" not in keys


def test_a_dead_endpoint_costs_little_and_no_trace(agent):
    """Nothing listens: one line says so, the agent's own standard error stays clean, the file is whole."""
    before = time.monotonic()
    options = ["--strict", "--trace", "t.ndjson", "--endpoint", "http://127.0.0.1:9"]
    done = start(*options, "--", sys.executable, agent(API_ONLY))

    assert done.returncode == 0
    assert time.monotonic() - before < 15
    text = done.stderr.decode()
    assert "turntrace: nothing listens at 127.0.0.1:9; the trace is in t.ndjson\n" in text
    assert len(turns()) == 1


def test_inside_a_recorded_agent_only_the_new_turn_is_shown(agent):
    """The file of the agent around it keeps its turns; the table is about this run."""
    name = agent(API_ONLY)
    parent = "00-000000000000000000000000000000ab-00000000000000cd-01"
    run(name)
    done = start("--", sys.executable, name, env={"TURNTRACE_TRACE": "t.ndjson", "TRACEPARENT": parent})

    first, second = turns()
    assert first.trace_id != second.trace_id == parent.split("-")[1]
    assert "1 round · 1 model call" in done.stderr.decode()


def test_labels_are_on_the_turn(agent):
    """--label adds to those of the variable."""
    done = start(
        *["--trace", "t.ndjson", "--label", "task=fix-42", "--", sys.executable, agent(API_ONLY)],
        env={"TURNTRACE_LABELS": "arm=a"},
    )

    assert done.returncode == 0
    assert turns()[0].labels == {"arm": "a", "task": "fix-42"}


def test_children_of_the_agent_are_left_alone(agent):
    """A Python that the agent starts is not instrumented and has nothing of ours that would do it."""
    code = """
        import subprocess, sys
        child = "import os, sys; print('opentelemetry' in sys.modules, [k for k in os.environ if k[:4] in ('OTEL', 'PYTH')])"
        subprocess.run([sys.executable, "-c", child], check=True)
    """
    done = run(agent(code), env={name: "" for name in os.environ if name.startswith("PYTHON")})

    plain = sorted(name for name in os.environ if name.startswith("PYTHON") and name != "PYTHONPATH")
    flag, _, names = done.stdout.decode().partition(" ")
    assert flag == "False"
    assert sorted(ast.literal_eval(names)) == plain


CALLS = """
    from opentelemetry import trace
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with trace.get_tracer("server").start_as_current_span("execute_tool search", attributes=tool):
        pass
"""
STARTS = (
    "import subprocess, sys; [subprocess.run([sys.executable, 'child.py'], check=True) for _ in range(2)]"
)


@pytest.mark.parametrize(
    ("before", "source", "names"),
    [
        pytest.param(API_ONLY, "dialect", ["chat m-1"], id="the agent has a turn"),
        pytest.param("", "run", [], id="the agent only starts others"),
        pytest.param(CALLS, "run", ["execute_tool search"], id="the agent has no root"),
    ],
)
def test_with_children_what_they_do_is_part_of_the_agents_turn(agent, before, source, names):
    """One turn, and each span of it once, whichever of the processes has its root."""
    agent(CALLS, "child.py")
    inside = before.replace("pass", STARTS).replace("sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)", "")
    done = start("--children", "--trace", "t.ndjson", "--", sys.executable, agent(inside or STARTS))

    assert done.returncode == 0, done.stderr
    (turn,) = turns()
    assert (turn.turn_source, turn.status) == (source, "ok")
    assert sorted(span.name for span in turn.spans) == sorted(names + ["execute_tool search"] * 2)
    assert turn.counters["tool_calls"] == 2 + len([name for name in names if "tool" in name])


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize("begins", ["before the turn", "in the turn", "without a turn"])
def test_workers_of_a_pool_are_part_of_the_turn(agent, how, begins):
    """Forked workers always, others with --children; wherever the pool was made."""
    code = f"""
        import multiprocessing
        from contextlib import nullcontext
        from opentelemetry import trace

        def work(number):
            tool = {{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"t{{number}}"}}
            with trace.get_tracer("worker").start_as_current_span(f"execute_tool t{{number}}", attributes=tool):
                pass

        def pool():
            return multiprocessing.get_context("{how}").Pool(2)

        if __name__ == "__main__":
            root = {{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}}
            turn = trace.get_tracer("agent").start_as_current_span("invoke_agent bot", attributes=root)
            early = pool() if {begins == "before the turn"} else None
            with nullcontext() if {begins == "without a turn"} else turn, early or pool() as workers:
                workers.map(work, range(4), 1)
                workers.close()
                workers.join()
    """
    options = ["--children"] if how == "spawn" else []
    done = start(*options, "--trace", "t.ndjson", "--", sys.executable, agent(code))

    assert done.returncode == 0, done.stderr
    (turn,) = turns()
    assert turn.turn_source == ("run" if begins == "without a turn" else "dialect")
    assert sorted(span.tool for span in turn.spans) == ["t0", "t1", "t2", "t3"]
    assert turn.counters["tool_calls"] == 4


@pytest.mark.parametrize(
    ("options", "recorded"), [(["--no-instrument"], False), (["--hands-off"], False), ([], True)]
)
def test_instrumentation_can_be_refused(agent, options, recorded):
    """Then the agent gets the file's name and a parent, and nothing starts in it."""
    code = "import os, sys; print('opentelemetry' in sys.modules, os.environ['TURNTRACE_TRACE'], 'TRACEPARENT' in os.environ)"
    done = start(*options, "--trace", "t.ndjson", "--", sys.executable, agent(code))

    assert done.stdout.decode().split() == [str(recorded), str(Path("t.ndjson").absolute()), "True"]


def test_a_python_without_turntrace_runs_untraced_and_is_told_of(agent, tmp_path):
    """The agent's status and output are its own; one line says which Python it was. --strict makes it 125."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    name = agent("print('ran'); raise SystemExit(4)")
    done = run(name, python=python)
    strict = start("--strict", "--trace", "t.ndjson", "--", python, name)

    assert (done.returncode, done.stdout) == (4, b"ran\n")
    assert (
        f"this Python ({python}) has no turntrace installed; the command ran untraced\n"
        in done.stderr.decode()
    )
    assert (strict.returncode, strict.stdout) == (125, b"ran\n")
    assert Path("t.ndjson").read_bytes() == b""


def test_any_other_command_passes_through(agent):
    """A program that is no Python gets the parent and the file's name; its turn is what it writes itself."""
    agent("")
    done = start(
        "--trace", "t.ndjson", "--", "sh", "-c", 'echo "$TURNTRACE_TRACE"; test "$TRACEPARENT" && exit 6'
    )

    assert (done.returncode, done.stdout.decode()) == (6, f"{Path('t.ndjson').absolute()}\n")
    assert "recording sh by what it sends over OTLP" in done.stderr.decode()


def test_a_launcher_leads_to_the_agent(agent):
    """`env`, `uv run` and the like end in the Python that is recorded."""
    done = start("--trace", "t.ndjson", "--", "env", "A=1", sys.executable, agent(API_ONLY))

    assert done.returncode == 0
    assert len(turns()) == 1


def test_a_script_is_recorded_by_its_first_line(agent):
    """A console script runs by itself; no `python` is typed."""
    name = agent(f"#!{sys.executable}\n{textwrap.dedent(API_ONLY)}", "my-agent")
    Path(name).chmod(0o755)
    done = start("--quiet", "--", "./my-agent")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"\n", b"told\n")
    (trace,) = Path(".turntrace").glob("*-my-agent.ndjson")
    assert len(read_paths([str(trace)]).turns) == 1
    assert Path(".turntrace/.gitignore").exists()


def test_options_end_at_the_command(agent):
    """What follows the command is the agent's, with or without the two dashes."""
    name = agent("import sys; print(sys.argv[1:])")
    words = ["--trace", "mine", "--", "--strict"]

    assert run(name, *words).stdout.decode() == f"{words}\n"
    assert start("--quiet", sys.executable, name, *words).stdout.decode() == f"{words}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--", "no-such-command-anywhere"], 127, "No such file"),
        (["--", "./plain"], 126, "Permission denied"),
        (["--trace", ".", "--", "touch", "ran"], 2, "cannot write the trace"),
        (["--trace", "-", "--", "touch", "ran"], 2, "standard error"),
        (["--label", "x", "--", "touch", "ran"], 2, "KEY=VALUE"),
        (["--content", "some", "--", "touch", "ran"], 2, "content"),
        ([], 2, "CMD"),
    ],
)
def test_what_cannot_be_run_is_not_run(agent, arguments, status, said):
    """A mistake is known before the agent starts; an earlier trace is not lost for a command that is missing."""
    agent("", "plain")
    Path("t.ndjson").write_text("earlier")
    done = start(*arguments, env={"TURNTRACE_TRACE": "t.ndjson"})

    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr.decode()
    assert not Path("ran").exists()
    assert Path("t.ndjson").read_text() == "earlier"


@pytest.mark.parametrize(
    "env",
    [
        {"TURNTRACE_LINGER": "soon"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "h:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "x"},
    ],
)
def test_a_setting_that_cannot_be_used_is_a_usage_error(agent, env):
    """The agent is not run with a setting that would lose its trace."""
    agent("")
    done = start("--", "touch", "ran", env=env)

    assert done.returncode == 2
    assert not Path("ran").exists()


def test_switched_off_it_only_runs_the_command(agent):
    """TURNTRACE_DISABLED: nothing is added to the environment, no file appears, and one line says so."""
    code = "import os, sys; print('TRACEPARENT' in os.environ); sys.exit(8)"
    done = run(agent(code), env={"TURNTRACE_DISABLED": "1"})

    assert (done.returncode, done.stdout) == (8, b"False\n")
    assert "nothing is recorded" in done.stderr.decode()
    assert [path.name for path in Path().iterdir()] == ["agent.py"]


INTERRUPTED = """
    import os, signal, sys, time
    from opentelemetry import trace
    tracer = trace.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            pass
        with tracer.start_as_current_span("execute_tool t", attributes={"gen_ai.operation.name": "execute_tool"}):
            print("ready", flush=True)
            if sys.argv[1:]:
                os.kill(os.getpid(), int(sys.argv[1]))
            time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_agents_turn_is_finished(agent, number):
    """What had ended and what was open is in the file, as an interrupted turn; --strict makes that 125."""
    name = agent(INTERRUPTED)
    done = run(name, int(number))
    strict = start("--strict", "--trace", "s.ndjson", "--", sys.executable, name, int(number))

    assert (done.returncode, done.stdout) == (128 + number, b"ready\n")
    assert "interrupted" in done.stderr.decode()
    (turn,) = turns()
    assert turn.status == "interrupted"
    assert {span.phase: span.outcome for span in turn.spans} == {
        "generation": "ok",
        "tool_execution": "incomplete",
    }
    assert not list(Path().glob("*.part"))
    assert strict.returncode == 125


def test_a_signal_to_turntrace_ends_the_agent_and_the_turn_is_told(agent):
    """SIGTERM behaves as if turntrace were not there, but for the table."""
    command = [*RUN, "--trace", "t.ndjson", "--", sys.executable, agent(INTERRUPTED)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout) == (128 + signal.SIGTERM, b"")
    assert b"interrupted" in stderr
    assert len(turns()) == 1


def test_on_a_terminal_everything_is_the_agents(agent, tmp_path):
    """The agent has the terminal; after Ctrl-C the table is printed, with bars, and the shell sees a SIGINT."""
    name = agent(f"import os; print([os.isatty(n) for n in range(3)])\n{textwrap.dedent(INTERRUPTED)}")
    with Terminal(tmp_path, *RUN, "--trace", "t.ndjson", "--", sys.executable, name) as terminal:
        assert b"[True, True, True]" in terminal.read_until(b"ready")
        terminal.type(b"\x03")

        printed = terminal.read_until(b"no prompts or outputs inside").decode()
        assert "KeyboardInterrupt" in printed
        assert "WHERE THE TURN WENT" in printed
        assert terminal.events(1) == [f"ended {-signal.SIGINT}"]


def test_a_standard_error_that_nobody_reads_costs_nothing(agent):
    """With its reader gone, or closed, the agent runs and its status is returned."""
    code = """
        import os
        try:
            os.write(2, b"told")
        except OSError:  # as without turntrace
            raise SystemExit(3)
    """
    name = agent(code)
    command = [*RUN, "--trace", "t.ndjson", "--", sys.executable, name]
    read, write = os.pipe()
    os.close(read)
    broken = subprocess.run(command, stderr=write, timeout=60)
    os.close(write)
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, timeout=60
    )

    assert broken.returncode == 3
    assert (closed.returncode, closed.stdout) == (3, b"")


@pytest.mark.parametrize(("command", "status"), [(["sh", "-c", "exit 3"], 3), (["no-such-agent"], 127)])
def test_a_standard_error_that_is_full_costs_nothing(tmp_path, command, status):
    """What turntrace has to say is lost, the command runs and its status is returned."""
    with Path("/dev/full").open("wb") as full:
        found = subprocess.run(
            [*RUN, "--trace", "t.ndjson", "--", *command], stderr=full, cwd=tmp_path, timeout=60
        )
    assert found.returncode == status


def test_help_tells_the_statuses_and_shows_examples():
    """The text of the command is its documentation."""
    text = start("--help", env={"COLUMNS": "120"}).stdout.decode()

    assert "128+N" in text
    assert "turntrace run -- python agent.py" in text
