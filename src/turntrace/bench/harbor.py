"""Tasks in Harbor's format, those that need nothing of a container: files in, a script that writes a reward out."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from turntrace.bench.dockerfile import Image, read_dockerfile
from turntrace.bench.publishing import patch_text
from turntrace.bench.tasks import RunChild
from turntrace.bench.trees import inside, tree_faults
from turntrace.bench.workspace import texts
from turntrace.errors import ConfigurationError

__all__ = ["Imported", "import_harbor"]

_INSTALLS: Final = re.compile(r"\b(apt-get|apt|apk|curl|wget|pip3?\s+install|uvx?|npm|npx|docker)\b(?=\s)")
_ABSOLUTE: Final = re.compile(r"""(?<![\w./:$})~*<-])/([A-Za-z_][\w.-]*)(?:/[\w.-]*)*""")
_ASKED: Final = ("gpus", "mcp_servers", "healthcheck")
_HOST_FOLDERS: Final = {"bin", "usr", "dev", "tmp"}
_PLACES: Final = {
    "/tests": ".harbor/tests",
    "/logs/verifier": ".harbor/reward",
    "/solution": ".harbor/solution",
}
_JUDGE: Final = """#!/bin/sh
# The tests are fresh, and so is the place of the reward.
rm -rf .harbor/reward
mkdir -p .harbor/reward
bash .harbor/tests/test.sh
case "$(cat .harbor/reward/reward.txt)" in 1|1.0) exit 0 ;; esac
exit 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a task: ``reasons`` are why it was left out, empty where it was taken."""

    name: str
    reasons: tuple[str, ...]


def import_harbor(
    source: Path, suite: Path, solver: RunChild | None = None, *, dry_run: bool = False
) -> tuple[Imported, ...]:
    """Take what can be taken of ``source``, a task or a folder of tasks, into the suite's folder, which is made.

    With ``solver`` each solution is run in a copy of its fixture, and what it changes is the patch.

    Raises:
        ConfigurationError: when there is no task, or the suite cannot be written.
    """
    folders = [source] if _is_task(source) else sorted(path for path in source.glob("*") if _is_task(path))
    if not folders:
        raise ConfigurationError(
            f"{source} holds no task: neither it nor a folder in it has task.toml and instruction.md"
        )
    found = []
    for folder in folders:
        with TemporaryDirectory(prefix="turntrace-import-") as parent:
            made = Path(parent) / folder.name
            reasons = tuple(dict.fromkeys(_take(folder, made, solver)))
            if not reasons and not dry_run:
                reasons = _kept(made, suite)
        found.append(Imported(name=folder.name, reasons=reasons))
    return tuple(found)


def _is_task(folder: Path) -> bool:
    return (folder / "task.toml").is_file() and (folder / "instruction.md").is_file()


def _kept(made: Path, suite: Path) -> tuple[str, ...]:
    goal = suite / "tasks" / made.name
    try:
        if goal.exists():
            return (f"is a task already: {goal}",)
        shutil.copytree(made, goal, symlinks=True)
        if not (suite / "suite.toml").exists():
            (suite / "suite.toml").write_text('id = "harbor"\n')
    except OSError as error:
        raise ConfigurationError(f"cannot write {goal}: {error.strerror or error}") from error
    return ()


def _take(folder: Path, made: Path, solver: RunChild | None) -> Iterator[str]:
    """Write the task ``folder`` to ``made`` as far as it goes, and tell what cannot be had."""
    try:
        table = tomllib.loads((folder / "task.toml").read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        yield f"has no readable task.toml: {error}"
        return
    yield from _settings(folder, table)
    image = _image(folder)
    yield from (f"needs a container for: {need}" for need in image.needs)
    if not image.workdir.strip("/"):
        yield "has no WORKDIR of its own"
        return
    yield from _fixture(folder / "environment", image, made / "fixture")
    yield from _written(folder, made, image.workdir, table)
    if solver is not None:
        yield from _solved(folder, made, image.workdir, solver)


def _settings(folder: Path, table: dict[str, Any]) -> Iterator[str]:
    asked = [key for key in _ASKED if table.get("environment", {}).get(key)]
    yield from (f"asks for {key}" for key in asked)
    given = [part for part in ("verifier", "solution") if table.get(part, {}).get("env")]
    yield from (f"gives variables to its {part}" for part in given)
    if table.get("steps"):
        yield "has several steps"
    if any((folder / "environment").glob("docker-compose.y*ml")):
        yield "needs several containers"
    if not (folder / "tests" / "test.sh").is_file():
        yield "has no tests/test.sh"
    yield from (f"holds {path.relative_to(folder)}, which {message}" for path, message in tree_faults(folder))


def _image(folder: Path) -> Image:
    path = folder / "environment" / "Dockerfile"
    if not path.is_file():
        return Image(workdir="", copies=(), needs=("an image without a Dockerfile",))
    return read_dockerfile(path.read_text(errors="replace"))


def _fixture(environment: Path, image: Image, goal: Path) -> Iterator[str]:
    goal.mkdir(parents=True)
    for source, relative in image.copies:
        at = environment if source in {".", "./"} else environment / source
        if at.is_dir():
            found = inside(environment, source)
            to = goal / relative if source not in {".", "./"} else goal
            if isinstance(found, str):
                yield f"copies {source}, which {found}"
            else:
                shutil.copytree(found, to, symlinks=True, dirs_exist_ok=True)
        elif at.is_file() and at.resolve().is_relative_to(environment.resolve()):
            (goal / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(at, goal / relative)
        else:
            yield f"copies {source}, which is not there"
    (goal / "Dockerfile").unlink(missing_ok=True)


def _written(folder: Path, made: Path, workdir: str, table: dict[str, Any]) -> Iterator[str]:
    oracle = made / "oracle" / ".harbor"
    oracle.mkdir(parents=True)
    for relative, text in sorted(texts(folder / "tests").items()):
        yield from _unfit(text, workdir, f"tests/{relative}", scripts=True)
        _write(oracle / "tests" / relative, _moved(text, workdir))
    _write(oracle / "judge.sh", _JUDGE)
    prompt = (folder / "instruction.md").read_text(errors="replace")
    yield from _unfit(prompt, workdir, "instruction.md", scripts=False)
    _write(made / "prompt.md", _moved(prompt, workdir))
    category = re.sub(r"[^A-Za-z0-9._-]+", "-", str(table.get("metadata", {}).get("category") or "harbor"))
    _write(
        made / "task.toml",
        f"class = {json.dumps(category.strip('-._') or 'harbor')}\n"
        f"timeout_s = {float(table.get('agent', {}).get('timeout_sec', 600))}\n\n"
        '[oracle]\ncommand = ["sh", ".harbor/judge.sh"]\n'
        f"timeout_s = {float(table.get('verifier', {}).get('timeout_sec', 600))}\n",
    )


def _unfit(text: str, workdir: str, name: str, *, scripts: bool) -> Iterator[str]:
    """What a text relies on that only its container has."""
    if scripts and (found := _INSTALLS.search(text)):
        yield f"has {name}, which runs {found[1]}"
    if scripts and "reward.json" in text:
        yield f"has {name}, which writes a reward.json"
    for match in _ABSOLUTE.finditer(text):
        path = match[0]
        is_known = path.startswith((f"{workdir}/", *(f"{place}/" for place in _PLACES))) or path.rstrip(
            "/."
        ) in {
            workdir,
            *_PLACES,
        }
        if not is_known and match[1] not in _HOST_FOLDERS:
            yield f"has {name}, which uses {path}"


def _moved(text: str, workdir: str) -> str:
    """The text with the container's folders as folders of the workspace."""
    for place, goal in _PLACES.items():
        text = re.sub(rf"(?<![\w.]){re.escape(place)}(?=[/\s\"'`;:,)]|$)", goal, text)
    text = re.sub(rf"(?<![\w.]){re.escape(workdir)}/(?=[\w.])", "", text)
    return re.sub(rf"(?<![\w.]){re.escape(workdir)}/?(?![\w/])", "./", text)


def _solved(folder: Path, made: Path, workdir: str, run: RunChild) -> Iterator[str]:
    script = folder / "solution" / "solve.sh"
    if not script.is_file():
        yield "has no solution/solve.sh"
        return
    text = _moved(script.read_text(errors="replace"), workdir)
    yield from _unfit(script.read_text(errors="replace"), workdir, "solution/solve.sh", scripts=True)
    with TemporaryDirectory(prefix="turntrace-solve-") as parent:
        at = Path(parent) / "workspace"
        shutil.copytree(made / "fixture", at, symlinks=True)
        done = run(["bash", "-c", text], cwd=at, stdin=b"", timeout_s=120.0)
        if done.status != 0:
            yield f"has a solution that ends with status {done.status}"
        before = texts(made / "fixture")
        after: dict[str, str | None] = {**dict.fromkeys(before), **texts(at)}
        _write(
            made / "solution.patch",
            patch_text(before, {p: t for p, t in after.items() if before.get(p) != t}),
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
