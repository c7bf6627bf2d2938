"""Run the SDKs' own tests of streams and raw responses, without and with our adapters, and compare them.

    python tests/sdk_suites/run.py            both SDKs
    python tests/sdk_suites/run.py openai     one

The tests come from the SDK's source distribution at the pinned version and run in an environment of their own,
offline. Every test must end with the adapters as it ends without them. What fails both ways needs a part of
the SDK's repository that its distribution leaves out, and is told.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
ROOT = TESTS.parent
CACHE = ROOT / ".sdk-suites"
WANTED = HERE / "requirements.txt"
SUITE_S = 400


@dataclass(frozen=True, slots=True)
class Suite:
    """Which of an SDK's tests run, and the options that they need."""

    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


SUITES = {
    "openai": Suite(
        (
            "tests/test_client.py",
            "tests/test_legacy_response.py",
            "tests/test_response.py",
            "tests/test_sse_framing.py",
            "tests/test_stream_mode.py",
            "tests/test_streaming.py",
            "tests/lib/test_streaming_deltas.py",
            "tests/lib/chat/test_completions.py",
            "tests/lib/chat/test_stream_moderation.py",
            "tests/lib/responses/test_responses.py",
        )
    ),
    "anthropic": Suite(
        (
            "tests/test_client.py",
            "tests/test_response.py",
            "tests/test_streaming.py",
            "tests/lib/streaming",
            "tests/lib/test_refusal_fallback_streaming.py",
            "tests/lib/_parse",
        ),
        ("-p", "tests._alias_httpx"),
    ),
}


def main(names: list[str]) -> int:
    """Run the suites named, both without any; 1 when a test ends otherwise with the adapters."""
    python = _environment()
    return max(_compared(name, python) for name in names or SUITES)


def _compared(name: str, python: Path) -> int:
    folder = _tests_of(name)
    without, with_adapters = (_outcomes(name, folder, python, on) for on in ("0", "1"))
    for test in sorted(without | with_adapters):
        if without.get(test) != with_adapters.get(test):
            print(f"{name}: {test}: {without.get(test)} without, {with_adapters.get(test)} with the adapters")
    print(
        f"{name}: {len(without)} tests, {dict(sorted(Counter(without.values()).items()))} without the adapters"
    )
    if without == with_adapters and "passed" in without.values():
        print(f"{name}: every test ends the same with them")
        return 0
    return 1


def _environment() -> Path:
    """The interpreter that has the SDKs, what their tests need, and this project."""
    python = CACHE / "venv" / "bin" / "python"
    digest = hashlib.sha256(WANTED.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = CACHE / "venv" / ".installed"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(CACHE, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(CACHE / "venv")], check=True)
        _pip(python, "install", "-c", str(ROOT / "constraints.txt"), "-r", str(WANTED), "-e", str(ROOT))
        stamp.write_text(digest)
    return python


def _tests_of(name: str) -> Path:
    """The folder with the tests of an SDK's source distribution."""
    lines = WANTED.read_text().splitlines()
    pinned = next(line for line in lines if line.partition("==")[0].partition("[")[0] == name)
    version = pinned.partition("==")[2]
    folder = CACHE / f"{name}-{version}"
    if not folder.exists():
        wanted = ("download", "--no-deps", "--no-binary", name, "--dest", str(CACHE), f"{name}=={version}")
        _pip(Path(sys.executable), *wanted)
        with tarfile.open(CACHE / f"{folder.name}.tar.gz") as source:
            parts = [one for one in source if "/tests/" in one.name or one.name.endswith("pyproject.toml")]
            source.extractall(CACHE, parts, filter="data")
    return folder


def _pip(python: Path, *arguments: str) -> None:
    subprocess.run(
        [str(python), "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"], check=True
    )


def _outcomes(name: str, folder: Path, python: Path, adapters: str) -> dict[str, str]:
    """How each test ended."""
    suite, told = SUITES[name], CACHE / f"{name}-{adapters}.json"
    told.unlink(missing_ok=True)
    done = subprocess.run(
        [
            *(
                str(python),
                "-m",
                "pytest",
                "-q",
                "-o",
                "addopts=",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:randomly",
            ),
            *("-p", "instrument.adapters.adapter_plugin", *suite.options, *suite.tests),
        ],
        cwd=folder,
        env={
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TURNTRACE_"))
            },
            "ANTHROPIC_OPEN_TELEMETRY": "false",
            "PYTHONPATH": str(TESTS),
            "TURNTRACE_ADAPTERS": adapters,
            "TURNTRACE_OUTCOMES": str(told),
        },
        capture_output=True,
        text=True,
        timeout=SUITE_S,
    )
    (CACHE / f"{name}-{adapters}.log").write_text(done.stdout + done.stderr)
    if adapters == "1":
        print(*(line for line in done.stdout.splitlines() if line.startswith("turntrace:")), sep="\n")
    return json.loads(told.read_text())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
