"""Forks, pools, threads, tasks and subprocesses: the right parents, no hang, nothing said."""

import os
import signal
import sys

import pytest

from integration.programs import run_code
from turntrace.files.read import read_paths

HEAD = """
import asyncio, logging, multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import turntrace as tt
OUT = {out!r}

class Said(logging.Handler):
    def emit(self, record):
        sys.stderr.write(f"{{record.levelname}} {{record.name}} {{record.getMessage()}}\\n")

logging.getLogger().addHandler(Said(logging.WARNING))

def work(name):
    with tt.tool(name):
        time.sleep(0.01)
    return os.getpid()
"""


def run_program(out, code, journal=None, **variables):
    """Run ``code`` with recording into ``out`` at hand; it must end well and say nothing at WARNING."""
    if journal is not None:
        variables["TURNTRACE_JOURNAL"] = journal
    ended = run_code(HEAD.format(out=str(out)) + code, **variables)
    assert (ended.status, ended.err) == (0, "")
    return ended


def one_turn(out):
    """The only turn of the file, which is whole, with nothing left beside it."""
    turns = [turn for turn in read_paths([str(out)], strict=True).turns if turn.parent_run_id is None]
    assert len(turns) == 1
    (turn,) = turns
    assert turn.status == "ok"
    left = [path.name for path in out.parent.iterdir() if path.name.endswith(".part")]
    assert left == []
    return turn


def tools(turn):
    """The tools of the turn's own children."""
    return sorted(span.tool for span in turn.spans if span.parent_id == turn.span_id and span.tool)


JOURNALS = pytest.mark.parametrize("journal", ["sync", "thread"])
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


@POSIX
@JOURNALS
def test_complaint_28_a_child_forked_inside_a_turn_adds_its_spans_to_it(tmp_path, journal):
    """The child's spans are the turn's, in a fragment; its exit neither hangs nor ends the parent's turn."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
tt.configure(trace=OUT)
with tt.turn("a"):
    work("before")
    if os.fork() == 0:
        work("child")
        sys.exit(0)
    assert os.wait()[1] == 0
    work("after")
""",
        journal,
    )
    turn = one_turn(out)
    assert tools(turn) == ["after", "before", "child"]


@POSIX
@JOURNALS
def test_complaint_28_a_child_forked_between_turns_records_turns_of_its_own(tmp_path, journal):
    """After a fork the child's turns go to the same file under its own name; none is lost or doubled."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
tt.configure(trace=OUT)
with tt.turn("parent"):
    work("p0")
children = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        with tt.turn(f"child{number}"):
            work(f"c{number}")
        sys.exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
with tt.turn("parent"):
    work("p1")
""",
        journal,
    )
    turns = read_paths([str(out)], strict=True).turns
    assert sorted((turn.agent, tools(turn)[0]) for turn in turns) == [
        *((f"child{number}", f"c{number}") for number in range(4)),
        ("parent", "p0"),
        ("parent", "p1"),
    ]
    assert len({turn.run_id for turn in turns}) == 6
    assert len({turn.trace_id for turn in turns}) == 6


@POSIX
@JOURNALS
def test_a_forked_child_holds_no_descriptor_of_its_parents_journals(tmp_path, journal):
    """Inherited journals are closed, so that a child that lives on never keeps a dead turn locked."""
    out = tmp_path / "t.ndjson"
    ended = run_program(
        out,
        """
tt.configure(trace=OUT)
with tt.turn("a"):
    work("x")
    time.sleep(0.2)
    if os.fork() == 0:
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if
                 os.path.exists(f"/proc/self/fd/{fd}")]
        print([link for link in links if OUT in link])
        sys.stdout.flush()
        os._exit(0)
    os.wait()
""",
        journal,
    )
    assert ended.out == "[]\n"
    assert tools(one_turn(out)) == ["x"]


@POSIX
def test_a_fork_in_the_middle_of_an_append_does_not_keep_the_file_locked(tmp_path):
    """A child that lives on holds none of the locks that its parent had at the fork."""
    from turntrace.files.lock import FileLock

    path = tmp_path / "t.lock"
    ended = run_code(
        f"""
import os, time
from pathlib import Path
from turntrace.files.lock import FileLock
with FileLock(Path({str(path)!r})) as lock:
    assert lock.held
    pid = os.fork()
    if pid == 0:
        os.close(1)
        os.close(2)
        time.sleep(3)
        os._exit(0)
print(pid)
"""
    )
    assert (ended.status, ended.err) == (0, "")
    with FileLock(path, 0.0) as lock:
        assert lock.held
    os.kill(int(ended.out), signal.SIGKILL)


@POSIX
def test_complaint_28_a_fork_while_other_threads_record_never_hangs(tmp_path):
    """Whatever lock a thread held at the fork, the child records and ends; twenty times."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import faulthandler, threading
tt.configure(trace=OUT)
over = threading.Event()
def busy():
    while not over.is_set():
        with tt.turn("busy"):
            for _ in range(20):
                with tt.phase("tool_planning"):
                    pass
        time.sleep(0.01)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
try:
    for number in range(20):
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(15, exit=True)
            with tt.turn(f"child{number}"):
                work("c")
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
finally:
    over.set()
    for thread in threads:
        thread.join()
""",
    )
    turns = read_paths([str(out)], strict=True).turns
    children = [turn for turn in turns if turn.agent.startswith("child")]
    assert sorted(turn.agent for turn in children) == sorted(f"child{number}" for number in range(20))
    assert {tuple(tools(turn)) for turn in children} == {("c",)}
    assert {len(turn.spans) for turn in turns if turn.agent == "busy"} == {20}
    assert {turn.status for turn in turns} == {"ok"}


POOL = """
def traced_work(name):
    tt.configure(trace=OUT)
    return work(name)

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    tt.configure(trace=OUT)
    with tt.turn("a"):
        os.environ.update({{k: v for k, v in tt.child_env().items() if k.startswith("TRACE")}})
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert os.getpid() not in set(pool.map(traced_work, ["x", "y", "z"]))
"""


@JOURNALS
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_complaint_28_workers_of_a_pool_add_to_the_turn_they_work_for(tmp_path, method, journal):
    """ProcessPoolExecutor by every start method: the workers' tools are tools of the parent's turn."""
    if method != "spawn" and sys.platform == "win32":
        pytest.skip("there is no fork")
    out, program = tmp_path / "t.ndjson", tmp_path / "program.py"
    program.write_text(HEAD.format(out=str(out)) + POOL.format(method=method))
    ended = run_code(
        f"import runpy, sys; sys.argv = [{str(program)!r}]\n"
        f"import subprocess; done = subprocess.run([sys.executable, {str(program)!r}]); sys.exit(done.returncode)",
        TURNTRACE_JOURNAL=journal,
    )
    assert (ended.status, ended.err) == (0, "")
    turn = one_turn(out)
    assert tools(turn) == ["x", "y", "z"]
    assert turn.counters["tool_calls"] == 3


@JOURNALS
def test_a_subprocess_that_configures_itself_joins_the_turn(tmp_path, journal):
    """child_env() carries the span: the child's root hangs under it in the one block of the turn."""
    out = tmp_path / "t.ndjson"
    code = """
import subprocess
CHILD = "import turntrace as tt; tt.configure()\\nwith tt.tool('inner'), tt.phase('process_wait'): pass"
tt.configure(trace=OUT)
with tt.turn("a"):
    with tt.tool("outer"):
        subprocess.run([sys.executable, "-c", CHILD], env=tt.child_env(), check=True)
"""
    run_program(out, code, journal)
    turn = one_turn(out)
    by_name = {span.name: span for span in turn.spans}
    assert set(by_name) == {"execute_tool outer", "execute_tool inner", "process_wait"}
    assert by_name["execute_tool inner"].parent_id == by_name["execute_tool outer"].span_id
    assert by_name["process_wait"].parent_id == by_name["execute_tool inner"].span_id


def test_a_subprocess_that_outlives_the_turn_is_joined_by_the_reader(tmp_path):
    """A fragment that came after the block stands beside the file and is joined when it is read."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import subprocess
CHILD = '''
import sys, time, turntrace as tt
tt.configure()
with tt.tool('late'):
    time.sleep(0.1)
    print('BEGUN', flush=True)
    sys.stdin.readline()
'''
handle = tt.configure(trace=OUT)
with tt.turn("a"):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], env=tt.child_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
handle.flush()
assert b'"outcome":"incomplete"' in open(OUT, "rb").read()
child.communicate("end")
""",
    )
    (turn,) = read_paths([str(out)], strict=True).turns
    assert [(span.tool, span.outcome) for span in turn.spans] == [("late", "ok")]


def test_a_subprocess_without_the_variables_is_a_stranger(tmp_path):
    """A child that was handed nothing records turns of its own."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import subprocess
CHILD = "import sys, turntrace as tt; tt.configure(trace=sys.argv[1])\\nwith tt.turn('b'), tt.tool('y'): pass"
tt.configure(trace=OUT)
with tt.turn("a"), tt.tool("x"):
    subprocess.run([sys.executable, "-c", CHILD, OUT], check=True)
""",
    )
    turns = read_paths([str(out)], strict=True).turns
    assert sorted((turn.agent, *tools(turn)) for turn in turns) == [("a", "x"), ("b", "y")]


CONCURRENT = {
    "gather": """
async def main():
    async def one(name):
        async with tt.tool(name):
            await asyncio.sleep(0.01)
    async with tt.turn("a"):
        await asyncio.gather(*(one(name) for name in "wxyz"))
asyncio.run(main())
""",
    "task_group": """
async def main():
    async def one(name):
        async with tt.tool(name):
            await asyncio.sleep(0.01)
    async with tt.turn("a"):
        async with asyncio.TaskGroup() as group:
            for name in "wxyz":
                group.create_task(one(name))
asyncio.run(main())
""",
    "to_thread": """
async def main():
    async with tt.turn("a"):
        await asyncio.gather(*(asyncio.to_thread(work, name) for name in "wxyz"))
asyncio.run(main())
""",
    "run_in_executor": """
async def main():
    async with tt.turn("a"):
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(None, work, name) for name in "wxyz"))
asyncio.run(main())
""",
    "anyio": """
import anyio
async def main():
    async with tt.turn("a"):
        async with anyio.create_task_group() as group:
            for name in "wxyz":
                group.start_soon(anyio.to_thread.run_sync, work, name)
anyio.run(main)
""",
    "threads": """
with tt.turn("a"), ThreadPoolExecutor(4) as pool:
    list(pool.map(work, "wxyz"))
""",
}


@JOURNALS
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("way", CONCURRENT)
def test_complaint_15_tools_that_run_at_once_are_siblings_under_the_turn(tmp_path, way, threads, journal):
    """Every way to run four tools at once gives four children of the turn and no root beside it."""
    out = tmp_path / "t.ndjson"
    run_program(out, f"tt.configure(trace=OUT, threads={threads})" + CONCURRENT[way], journal)
    turn = one_turn(out)
    spans = [span for span in turn.spans if span.tool]
    assert sorted(span.tool for span in spans) == list("wxyz")
    parents = {span.parent_id for span in spans}
    assert parents in ({turn.span_id}, {None})
    if way in {"gather", "task_group", "to_thread", "anyio"} or threads:
        assert parents == {turn.span_id}
        assert {span.parent_source for span in spans} == {"otel"}
    else:
        assert {span.parent_source for span in spans} <= {"otel", "inferred"}


def test_a_cancelled_task_ends_its_spans_once(tmp_path):
    """Cancellation passes through; what it interrupted is told as cancelled and the turn goes on."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
tt.configure(trace=OUT)
async def slow():
    async with tt.tool("slow"), tt.phase("process_wait"):
        await asyncio.sleep(60)
async def main():
    async with tt.turn("a"):
        task = asyncio.create_task(slow())
        await asyncio.sleep(0.02)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        async with tt.tool("next"):
            pass
asyncio.run(main())
""",
    )
    turn = one_turn(out)
    assert tools(turn) == ["next", "slow"]
    outcomes = {span.name: span.outcome for span in turn.spans}
    assert outcomes == {
        "execute_tool slow": "cancelled",
        "process_wait": "cancelled",
        "execute_tool next": "ok",
    }


def test_complaint_17_a_background_child_outlives_its_turn(tmp_path):
    """A task that ends after the turn keeps its own time; the turn's window stays, and it is flagged once."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
tt.configure(trace=OUT)
async def background():
    async with tt.tool("late"):
        await asyncio.sleep(0.2)
async def main():
    async with tt.turn("a"):
        task = asyncio.create_task(background())
        await asyncio.sleep(0.05)
    await task
asyncio.run(main())
""",
    )
    turn = one_turn(out)
    (late,) = turn.spans
    assert late.outcome == "ok"
    assert late.end_ns > turn.completed_ns
    assert late.end_ns - late.start_ns > 190_000_000
    from turntrace.core.attribution import attribute

    result = attribute(
        turn.spans, started_ns=turn.started_ns, completed_ns=turn.completed_ns, root_id=turn.span_id
    )
    (times,) = result.spans
    assert times.detached
    assert times.exclusive_ns == turn.completed_ns - late.start_ns


def test_r39_thirty_threads_with_a_turn_each_never_mix(tmp_path):
    """30 threads, each with its own turn and four spans: 30 turns with four spans each."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
tt.configure(trace=OUT)
def agent(number):
    with tt.turn(f"a{number}", session_id=f"s{number}"):
        for step in range(4):
            work(f"t{number}")
with ThreadPoolExecutor(30) as pool:
    list(pool.map(agent, range(30)))
""",
    )
    turns = read_paths([str(out)], strict=True).turns
    assert sorted((t.agent, t.session_id, *tools(t)) for t in turns) == sorted(
        (f"a{n}", f"s{n}", *[f"t{n}"] * 4) for n in range(30)
    )


def test_r69_parallel_tools_of_two_hundred_turns_are_all_there(tmp_path):
    """200 turns of 5 tools in gather, half of them raising: 1,000 children of their turns, 500 errors."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import random
tt.configure(trace=OUT)
async def one(number):
    async with tt.tool("t"):
        await asyncio.sleep(random.uniform(0, 0.005))
        if number % 2:
            raise ValueError
async def agent(start):
    async with tt.turn("a"):
        await asyncio.gather(*(one(start + step) for step in range(5)), return_exceptions=True)
async def main():
    await asyncio.gather(*(agent(5 * number) for number in range(200)))
asyncio.run(main())
""",
    )
    turns = read_paths([str(out)], strict=True).turns
    spans = [(turn, span) for turn in turns for span in turn.spans]
    assert len(turns) == 200
    assert len(spans) == 1_000
    assert all(span.parent_id == turn.span_id for turn, span in spans)
    assert sum(span.status == "error" for _, span in spans) == 500


def test_r70_tools_in_threads_keep_their_turn_and_a_side_call_stays_out_of_it(tmp_path):
    """Four tools with the context carried and one without are the turn's; a call under a root of its own is not."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import contextvars, threading
from opentelemetry import trace
from opentelemetry.context import Context
tt.configure(trace=OUT)
with tt.turn("a"):
    with tt.generation(model="m") as g:
        g.usage(input_tokens=10, output_tokens=1)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(contextvars.copy_context().run, work, f"t{n}") for n in range(4)]
        [future.result() for future in futures]
    bare = threading.Thread(target=work, args=("bare",))
    bare.start()
    bare.join()
    side = trace.get_tracer("titles").start_span(
        "invoke_agent titles", Context(), attributes={"gen_ai.operation.name": "invoke_agent"})
    with trace.use_span(side, end_on_exit=True):
        with tt.generation(model="m-small") as g:
            g.usage(input_tokens=999, output_tokens=9)
""",
    )
    turns = read_paths([str(out)], strict=True).turns
    (agent,) = [turn for turn in turns if turn.agent == "a"]
    assert tools(agent) == ["t0", "t1", "t2", "t3"]
    (bare,) = [span for span in agent.spans if span.tool == "bare"]
    assert bare.parent_source == "inferred"
    assert [usage.input_tokens for usage in agent.usage] == [10]
    (side,) = [turn for turn in turns if turn is not agent]
    assert [usage.input_tokens for usage in side.usage] == [999]


@POSIX
@JOURNALS
def test_a_child_leaves_blocks_of_its_parent_whatever_lock_a_thread_held(tmp_path, journal):
    """Another thread works on the very spans that the child inherits and leaves: it touches none of them."""
    out = tmp_path / "t.ndjson"
    run_program(
        out,
        """
import faulthandler, threading
from opentelemetry import trace
tt.configure(trace=OUT)
over = threading.Event()
def busy(spans):
    while not over.is_set():
        for span in spans:
            span.set_attribute("list", ["x"])
children = []
with tt.turn("a"):
    outer = trace.get_current_span()
    with tt.phase("tool_planning"):
        thread = threading.Thread(target=busy, args=([outer, trace.get_current_span()],))
        thread.start()
        for number in range(20):
            pid = os.fork()
            if pid == 0:
                faulthandler.dump_traceback_later(15, exit=True)
                break
            children.append(pid)
        if pid:
            over.set()
            thread.join()
    if pid == 0:
        sys.exit(0)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 20
""",
        journal,
    )
    turn = one_turn(out)
    assert [span.phase for span in turn.spans] == ["tool_planning"]
