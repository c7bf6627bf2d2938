"""Make the framework traces anew: each framework in an environment of its own, against the model server.

    python tests/frameworks/run.py            all of them
    python tests/frameworks/run.py openai     one
    python tests/frameworks/run.py openai --into /tmp/traces

A framework is a folder beside this file: ``case.toml`` says what it can do, ``requirements.txt`` or
``package.json`` what to install, ``agent.py`` or ``agent.mjs`` plays the scenario. A case may name another's
``agent`` and the ``instruments`` to switch on. What comes out are
``traces/NAME.json`` and, with what really happened, ``traces/NAME.truth.json``.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent
ROOT = TESTS.parent
CACHE = ROOT / ".frameworks"
TRACES = HERE / "traces"

sys.path.insert(0, str(TESTS))

from frameworks import scenario  # noqa: E402  the path is set above
from frameworks.model_server import ModelServer  # noqa: E402

INSTALL_S = 600
RUN_S = 120
MAX_BYTES = 300_000
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


def main(arguments: list[str]) -> int:
    """Make the traces of the frameworks named, of all without any; the number of those that failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--into", type=Path, default=TRACES)
    asked = parser.parse_args(arguments)
    known = sorted(path.parent.name for path in HERE.glob("*/case.toml"))
    failed = 0
    for name in asked.names or known:
        try:
            make(name, asked.into)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{name}: {error}", file=sys.stderr)
    return failed


def make(name: str, traces: Path) -> None:
    """Install one framework, run its agent, write its trace and the truth into the folder ``traces``."""
    case = tomllib.loads((HERE / name / "case.toml").read_text())
    began = time.perf_counter()
    command, packages = (_node if (HERE / name / "package.json").exists() else _python)(name, case)
    installed = time.perf_counter()
    spans, diary = CACHE / f"{name}.spans", CACHE / f"{name}.diary"
    for path in (spans, diary):
        path.unlink(missing_ok=True)
    with ModelServer() as server:
        for session, steps in scenario.scripts(case).items():
            server.script(steps, session)
        told = {"SPANS": spans, "DIARY": diary, "INSTRUMENTS": ",".join(case.get("instruments", ()))}
        warnings = _run(name, command, server.url, told, case)
        if server.left() or not all(exchange.scripted for exchange in server.exchanges):
            raise RuntimeError(
                f"another number of requests than scripted: {len(server.exchanges)} and {server.left()} left\n{warnings}"
            )
        truth = _truth(name, case, server, _intervals(diary, server.t0_unix_ns))
    truth["otel_warnings"] = sorted({line[:300] for line in warnings.splitlines() if "opentelemetry" in line})
    truth["packages"] = packages
    trace = spans.read_text()
    for text in (str(ROOT), str(Path.home()) + "/", f'"{os.uname().nodename}"'):
        if text in trace:
            raise RuntimeError(f"the trace tells of the machine: {text}")
    if len(trace) > MAX_BYTES:
        raise RuntimeError(f"the trace has {len(trace)} bytes, more than {MAX_BYTES}")
    traces.mkdir(exist_ok=True)
    (traces / f"{name}.json").write_text(trace)
    (traces / f"{name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    print(
        f"{name}: {len(trace.splitlines())} spans, {len(trace)} bytes, "
        f"installed in {installed - began:.0f} s, ran in {time.perf_counter() - installed:.0f} s"
    )


def _python(name: str, case: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The command of an agent in Python and what is installed for it."""
    wanted = HERE / name / "requirements.txt"
    home = CACHE / hashlib.sha256(wanted.read_bytes()).hexdigest()[:16]
    python = home / "bin" / "python"

    def install() -> None:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=INSTALL_S)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(wanted)], check=True, timeout=INSTALL_S)

    _once(home, wanted, install)
    frozen = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    ).stdout.split()
    ours = [line.partition("==")[0] for line in wanted.read_text().split()]
    told = [one for one in frozen if one.startswith(("opentelemetry-", "openinference-", *ours))]
    return [str(python), str(HERE / case.get("agent", name) / "agent.py")], told


def _node(name: str, case: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The command of an agent in JavaScript and what is installed for it."""
    home = CACHE / name
    wanted = HERE / name / "package.json"

    def install() -> None:
        home.mkdir(parents=True)
        shutil.copy(wanted, home)
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(npm, cwd=home, check=True, timeout=INSTALL_S)

    _once(home, wanted, install)
    for script in (HERE / case.get("agent", name)).glob("*.mjs"):
        shutil.copy(script, home)
    pinned = json.loads(wanted.read_text())["dependencies"]
    return ["node", str(home / "agent.mjs")], [f"{key}=={version}" for key, version in pinned.items()]


def _once(home: Path, wanted: Path, install: Any) -> None:
    """Install unless it was done with the same ``wanted``."""
    stamp = home / ".installed"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(home, ignore_errors=True)
    CACHE.mkdir(exist_ok=True)
    install()
    stamp.write_text(digest)


def _run(name: str, command: list[str], url: str, told: dict[str, Any], case: dict[str, Any]) -> str:
    """Run the agent in an environment that has nothing of the caller's; what it said to standard error."""
    environment = {key: value for key in KEPT if (value := os.environ.get(key))}
    environment |= {
        "PYTHONPATH": str(TESTS),
        "FRAMEWORKS_URL": url,
        **{f"FRAMEWORKS_{key}": str(value) for key, value in told.items()},
        "OPENAI_API_KEY": "fake",
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_API_KEY": "fake",
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_API_KEY": "fake",
        "NO_PROXY": "127.0.0.1",
    }
    environment |= case.get("environment", {})
    done = subprocess.run(
        command, env=environment, cwd=HERE / name, capture_output=True, text=True, timeout=RUN_S
    )
    (CACHE / f"{name}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(f"the agent failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stderr


def _intervals(diary: Path, zero_ns: int) -> list[dict[str, Any]]:
    """What the agent noted of its tools, on the clock of the server."""
    lines = diary.read_text().splitlines() if diary.exists() else []
    found = sorted((json.loads(line) for line in lines), key=lambda one: one["start_ns"])
    return [
        {
            "what": one["what"],
            "start_ms": round((one["start_ns"] - zero_ns) / 1e6, 1),
            "end_ms": round((one["end_ns"] - zero_ns) / 1e6, 1),
            "failed": one["failed"],
        }
        for one in found
    ]


def _truth(
    name: str, case: dict[str, Any], server: ModelServer, intervals: list[dict[str, Any]]
) -> dict[str, Any]:
    """What really happened."""
    return {
        "file": f"{name}.json",
        "ran": case["ran"],
        "t0_unix_ns": server.t0_unix_ns,
        "facts": scenario.expected(case, server, intervals),
        "told": case.get("told", {}),
        **server.truth(),
        "intervals": intervals,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
