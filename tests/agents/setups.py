"""How each coding agent is made to ask the model server: private folders are for tests only."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["AGENTS", "CACHE", "SETUPS", "Setup", "program"]

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".agents"
AGENTS: Mapping[str, Mapping[str, str]] = json.loads((HERE / "agents.json").read_text())
PROMPT = "Run the script tool.sh and tell me what it says."
COMMAND = "sh tool.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """``tool`` and ``call`` are the agent's shell tool and its arguments.

    ``prepare`` fills the home and says which variables lead to the model server. ``preset``: another one
    than that of the same name.
    """

    arguments: tuple[str, ...]
    tool: str
    call: dict[str, Any]
    prepare: Callable[[Path, str], dict[str, str]]
    preset: str = ""


def program(name: str) -> Path:
    """The agent's command, where ``make agents`` installs it."""
    if "folder" in AGENTS[name]:
        return Path(AGENTS[name]["command"])
    return CACHE / name / "node_modules" / ".bin" / AGENTS[name]["command"]


def _codex(home: Path, url: str) -> dict[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(
        'model = "gpt-fake"\nmodel_provider = "local"\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nenv_key = "LOCAL_KEY"\nwire_api = "responses"\n'
    )
    return {"LOCAL_KEY": "fake"}


def _claude(home: Path, url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake", "IS_SANDBOX": "1"}


def _gemini(home: Path, url: str) -> dict[str, str]:
    folder = home / ".gemini"
    folder.mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "fake"}


def _opencode(home: Path, url: str) -> dict[str, str]:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{url}/v1", "apiKey": "fake"},
        "models": {"gpt-fake": {"name": "gpt-fake"}},
    }
    config = {
        "provider": {"local": provider},
        "model": "local/gpt-fake",
        "small_model": "local/gpt-fake",
        "autoupdate": False,
    }
    (folder / "opencode.json").write_text(json.dumps(config))
    return {}


SETUPS: Mapping[str, Setup] = {
    "codex": Setup(
        arguments=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT),
        tool="exec_command",
        call={"cmd": COMMAND},
        prepare=_codex,
    ),
    "claude": Setup(
        arguments=("-p", PROMPT, "--model", "claude-fake", "--allowedTools", "Bash"),
        tool="Bash",
        call={"command": COMMAND, "description": "Run the script"},
        prepare=_claude,
    ),
    "gemini": Setup(
        arguments=("-p", PROMPT, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-fake"),
        tool="run_shell_command",
        call={"command": COMMAND},
        prepare=_gemini,
    ),
    "opencode": Setup(
        arguments=("run", PROMPT),
        tool="bash",
        call={"command": COMMAND, "description": "Run the script"},
        prepare=_opencode,
    ),
    "node": Setup(
        arguments=(str(CACHE / "node" / "agent.mjs"), PROMPT),
        tool="shell",
        call={"command": COMMAND},
        prepare=lambda home, url: {"MODEL_URL": f"{url}/v1"},
        preset="otel",
    ),
}
