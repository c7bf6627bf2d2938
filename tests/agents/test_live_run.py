"""`turntrace run` around real coding agents: one turn, and nothing of the agent's changed."""

import re
import sys
from pathlib import Path

import pytest

from agents.checks import differences
from agents.installed import ALLOWED, REPEATS, installed
from agents.scene import play
from agents.test_recorded_agents import UNSAID
from otlp_receiver import HttpReceiver
from turntrace.files.read import read_paths

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
LOGIN = {
    "codex": ".codex/login.json",
    "claude": ".claude/.login.json",
    "gemini": ".gemini/login.json",
    "opencode": ".local/share/opencode/login.json",
    "node": "login.json",
}
"""Beside what each agent keeps of its user; nothing may touch it."""


def by_run(out, *options, env=()):
    """``turntrace run`` in front of the command, in the agent's own environment."""

    def command(name, words, environment, url):
        run = [sys.executable, "-m", "turntrace", "run", "--trace", str(out), *options, "--", *words]
        return run, {**environment, **dict(env)}

    return command


class Home:
    """What lay in the agent's home before it ran, and what became of it, without the ports of this run."""

    def __init__(self, telemetry):
        self._telemetry = telemetry
        self.before, self.after = {}, {}

    def __call__(self, name, words, environment, url):
        home = Path(environment["HOME"])
        login = home / LOGIN[name]
        login.parent.mkdir(parents=True, exist_ok=True)
        login.write_text('{"token": "a login that must stay"}')
        self.before = self._texts(home)
        return self._telemetry(name, words, environment, url)

    def look(self, home):
        """Afterwards: the same files."""
        self.after = {path: text for path, text in self._texts(home).items() if path in self.before}

    def _texts(self, home):
        files = (path for path in home.rglob("*") if path.is_file())
        return {
            str(path.relative_to(home)): re.sub(r"127\.0\.0\.1:\d+", "HOST", path.read_text(errors="replace"))
            for path in files
        }


def said(text):
    """What a person reads, without what differs from run to run."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


@pytest.mark.parametrize("name", LOGIN)
def test_run_tells_the_turn_of_a_real_agent(name, tmp_path):
    """One turn within bounds in 18 of 20 repeats; the agent's answer, status, home and login are its own."""
    installed(name)
    untouched = Home(lambda _, words, environment, __: (words, environment))
    alone = play(name, untouched, untouched.look)
    wrong = []
    for number in range(REPEATS):
        out = tmp_path / f"{number}.ndjson"
        home = Home(by_run(out))
        played = play(name, home, home.look)
        assert (played.status, said(played.stdout)) == (alone.status, said(alone.stdout)), played.output
        assert home.after == untouched.after  # some agents rewrite their own configuration
        assert home.after[LOGIN[name]] == home.before[LOGIN[name]]
        found = differences(read_paths([str(out)]).turns, played.truth, unsaid=UNSAID.get(name, frozenset()))
        if found:
            wrong.append((number, found))
        assert [path.name for path in tmp_path.iterdir() if path.suffix in {".part", ".otlp"}] == []
    print(f"{name}: {REPEATS - len(wrong)} of {REPEATS} within bounds; {wrong}")
    assert len(wrong) <= ALLOWED, wrong


def test_an_agents_own_backend_keeps_getting_its_telemetry(tmp_path):
    """Claude's telemetry was on before: its endpoint gets what it sent, and we get the turn."""
    installed("claude")
    with HttpReceiver() as backend:
        env = {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": backend.endpoint,
        }
        out = tmp_path / "t.ndjson"
        played = play("claude", by_run(out, env=env))
        assert played.status == 0, played.output
        sent = {span.span_id.hex() for _, _, span in backend.spans()}
    (turn,) = [turn for turn in read_paths([str(out)]).turns if turn.parent_run_id is None]
    kept = {span.span_id for span in turn.spans if span.parent_source == "otel"}
    assert kept
    assert kept - sent == set()
    assert "which still gets it" in played.output


def test_hands_off_changes_nothing(tmp_path):
    """The agent gets no settings of ours, so nothing is recorded, and that is said."""
    installed("codex")
    played = play("codex", by_run(tmp_path / "t.ndjson", "--hands-off"))
    assert played.status == 0, played.output
    assert "no turn was recorded" in played.output
    assert (tmp_path / "t.ndjson").stat().st_size == 0
