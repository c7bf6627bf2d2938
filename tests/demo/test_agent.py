"""The bundled agent against the bundled server: what it does is the same whether or not it is traced."""

import json
import os

import pytest

from turntrace.demo.agent import run_agent
from turntrace.demo.chat_client import ModelUnavailableError, StreamBrokenError
from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import ANSWER, DEMO_SCRIPT
from turntrace.demo.script import InOrder, Reply, TokenUsage, ToolCall
from turntrace.demo.tools import Workspace

SPEED = 25.0


def test_two_runs_send_the_same_requests_byte_for_byte(capfd):
    """Nothing of a run depends on time, chance or an earlier run, and nothing is printed."""
    with ModelServer(DEMO_SCRIPT, speed=SPEED, keep_requests=True) as server:
        answers = [run_agent(server.base_url, speed=SPEED) for _ in range(2)]
        records = server.log.wait(10)
    assert answers == [ANSWER, ANSWER]
    first, second = records[:5], records[5:]
    assert [record.request for record in first] == [record.request for record in second]
    assert [record.status for record in first] == [200, 429, 200, 200, 200]
    assert capfd.readouterr() == ("", "")


def test_the_answer_is_printed_only_when_asked(capfd):
    """With print_answer standard output holds the answer and nothing else."""
    with ModelServer(DEMO_SCRIPT, speed=SPEED) as server:
        run_agent(server.base_url, speed=SPEED, print_answer=True)
    assert capfd.readouterr() == (f"{ANSWER}\n", "")


def test_the_conversation_holds_every_tool_result_and_is_compacted():
    """The last request has the results of all five calls in their order, the old ones shortened."""
    with ModelServer(DEMO_SCRIPT, speed=SPEED, keep_requests=True) as server:
        run_agent(server.base_url, speed=SPEED)
        *_, before, last = (
            json.loads(record.request.partition(b"\r\n\r\n")[2])["messages"] for record in server.log.wait(5)
        )
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == [
        f"call_{number}" for number in range(1, 6)
    ]
    assert results[3] == "2 passed\n"
    assert results[4] == "wrote reader.py; checks: passed"
    assert max(len(result) for result in results[:3]) == 40
    assert max(len(message["content"]) for message in before if message["role"] == "tool") > 100


def test_a_server_that_keeps_refusing_is_given_up():
    """The fourth refusal is the last; each retry says how many came before."""
    with ModelServer(InOrder((Reply(status=503),)), keep_requests=True) as server:
        with pytest.raises(ModelUnavailableError, match="status 503"):
            run_agent(server.base_url, speed=SPEED)
        requests = [record.request.lower() for record in server.log.wait(4)]
    assert len(requests) == 4
    assert all(b"x-stainless-retry-count: %d\r\n" % n in request for n, request in enumerate(requests))


def test_a_request_that_is_wrong_is_not_repeated():
    """A status that a retry cannot change ends the turn at once."""
    with ModelServer(InOrder((Reply(status=400),))) as server:
        with pytest.raises(ModelUnavailableError, match="status 400"):
            run_agent(server.base_url, speed=SPEED)
        assert len(server.log.wait(1)) == 1


def test_a_broken_stream_reaches_the_caller():
    """The agent hides no failure of the model server."""
    script = InOrder((Reply(content=("a", "b"), drop_after_chunks=2),))
    with ModelServer(script) as server, pytest.raises(StreamBrokenError):
        run_agent(server.base_url, speed=SPEED)


def test_an_error_of_a_tool_reaches_the_caller():
    """A tool that does not exist is an error of the turn, from whatever thread it comes."""
    reply = Reply(tool_calls=(ToolCall(call_id="c", name="nothing"),), usage=TokenUsage())
    with ModelServer(InOrder((reply,))) as server, pytest.raises(KeyError, match="nothing"):
        run_agent(server.base_url, speed=SPEED)


def test_the_scripted_code_runs_in_another_process():
    """The python tool starts an interpreter of its own."""
    output = Workspace(speed=SPEED).run("python", {"code": "import os; print(os.getppid())"})
    assert output == f"{os.getpid()}\n"


def test_tools_share_one_workspace():
    """What is edited is what is read, searched and checked."""
    workspace = Workspace(speed=1000.0)
    workspace.run("edit_file", {"path": "a.py", "text": "def f(): pass"})
    assert workspace.run("read_file", {"path": "a.py"}) == "def f(): pass"
    assert workspace.run("search", {"query": "def f"}) == "a.py: defines def f"
    assert workspace.check() == "passed"
    workspace.run("edit_file", {"path": "a.py", "text": "def f(:"})
    with pytest.raises(SyntaxError):
        workspace.check()
