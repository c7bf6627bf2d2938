"""How each agent is started and read: data. Adding an agent is adding a row."""

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from turntrace.errors import ConfigurationError

__all__ = ["PRESETS", "Agent", "agent_of"]

_PYTHON: Final = sys.executable
_HERE: Final = Path(__file__).parent
_TURNTRACE: Final = (_PYTHON, "-P", "-m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One way to run an agent.

    In ``argv`` the words {prompt}, {workspace}, {task_id}, {model} and {answer_file} are replaced, each
    within its element; without {prompt} it goes to standard input.
    ``answer``: where the last words stand: standard output as it is, the file, or a JSON line of the output.
    ``incomplete``: statuses that mean it stopped early, where a passing oracle decides.
    ``feeds``: what a bundled agent gets: the solution on standard input, or a model server that knows it.
    ``auth``: variables that log it in; ``login``: files below the home that do.
    """

    name: str
    argv: tuple[str, ...]
    answer: Literal["stdout", "file", "json:result", "json:final"] = "stdout"
    incomplete: frozenset[int] = frozenset()
    needs_model: bool = False
    network: bool = False
    traces: Literal["native", "otlp", "none"] = "native"
    feeds: Literal["none", "solution", "model"] = "none"
    auth: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=())

    @property
    def takes_prompt(self) -> bool:
        """Whether the prompt is an argument."""
        return any("{prompt}" in word for word in self.argv)

    def command(self, words: dict[str, str]) -> tuple[str, ...]:
        """The argument vector with ``words`` filled in, each in one pass.

        >>> Agent(name="x", argv=("ask", "{prompt}")).command({"prompt": "{model}", "model": "m"})
        ('ask', '{model}')
        """
        return tuple(_filled(word, words) for word in self.argv)


def _filled(word: str, words: dict[str, str]) -> str:
    """Placeholders of ``word`` itself only: what is filled in is never looked at again."""
    pieces = []
    rest = word
    while rest:
        at, name = min(
            ((rest.find(f"{{{name}}}"), name) for name in words if f"{{{name}}}" in rest), default=(-1, "")
        )
        if at < 0:
            break
        pieces += [rest[:at], words[name]]
        rest = rest[at + len(name) + 2 :]
    return "".join([*pieces, rest])


PRESETS: Final = {
    agent.name: agent
    for agent in (
        Agent(name="nop", argv=(_PYTHON, "-I", "-S", "-c", "pass", "{prompt}"), traces="none"),
        Agent(
            name="oracle",
            argv=(_PYTHON, "-I", "-S", str(_HERE / "solving_agent.py")),
            traces="none",
            feeds="solution",
        ),
        Agent(
            name="reference",
            argv=(*_TURNTRACE, "turntrace.bench.reference_agent", "{prompt}"),
            feeds="model",
        ),
        Agent(
            name="zero",
            argv=(
                "zero",
                "exec",
                "--auto",
                "member",
                "--output-format",
                "stream-json",
                "--model",
                "{model}",
                "{prompt}",
            ),
            answer="json:final",
            incomplete=frozenset({4}),
            needs_model=True,
            network=True,
            auth=("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
            env=(("ZERO_TRACE", "{trace}"),),
        ),
        Agent(
            name="codex",
            argv=("codex", "exec", "--skip-git-repo-check", "--full-auto", "-o", "{answer_file}", "{prompt}"),
            answer="file",
            network=True,
            traces="otlp",
            auth=("OPENAI_API_KEY", "CODEX_API_KEY"),
            login=(".codex/auth.json",),
        ),
        Agent(
            name="claude",
            argv=(
                "claude",
                "-p",
                "{prompt}",
                "--output-format",
                "json",
                "--permission-mode",
                "bypassPermissions",
            ),
            answer="json:result",
            network=True,
            traces="otlp",
            auth=("ANTHROPIC_API_KEY",),
            login=(".claude/.credentials.json", ".claude.json"),
            env=(("IS_SANDBOX", "1"),),
        ),
        Agent(
            name="gemini",
            argv=("gemini", "-p", "{prompt}", "--approval-mode", "yolo", "--skip-trust"),
            network=True,
            traces="otlp",
            auth=("GEMINI_API_KEY",),
            login=(".gemini/oauth_creds.json", ".gemini/settings.json"),
        ),
        Agent(
            name="opencode",
            argv=("opencode", "run", "--model", "{model}", "{prompt}"),
            needs_model=True,
            network=True,
            traces="otlp",
            auth=("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
            login=(".local/share/opencode/auth.json",),
        ),
    )
}
"""The agents known by name. ``python:MODULE:FUNC`` and a command of one's own come beside them."""


def agent_of(name: str | None, command: str | None) -> Agent:
    """The agent that ``--agent`` or ``--agent-cmd`` means.

    Raises:
        ConfigurationError: neither or both are given, or nobody is called so.
    """
    if (name is None) == (command is None):
        raise ConfigurationError("name one agent: --agent NAME or --agent-cmd CMD")
    if command is not None:
        argv = tuple(shlex.split(command))
        if not argv:
            raise ConfigurationError("--agent-cmd is empty")
        return Agent(name="command", argv=argv, needs_model="{model}" in command, network=True)
    assert name is not None  # noqa: S101 - told above, for the type checker
    if name.startswith("python:"):
        module, _, function = name.removeprefix("python:").partition(":")
        if not module or not function:
            raise ConfigurationError(f"{name}: write python:MODULE:FUNC")
        argv = (_PYTHON, "-m", "turntrace.bench.python_agent", module, function, "{prompt}")
        return Agent(name=name, argv=argv, network=True)
    if name not in PRESETS:
        raise ConfigurationError(
            f"no agent is called {name}; known are {', '.join(PRESETS)}, python:MODULE:FUNC"
        )
    return PRESETS[name]
