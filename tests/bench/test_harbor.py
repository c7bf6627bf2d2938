"""Tasks in Harbor's format: those without container features are taken and judged, the others say what they need."""

import json

import pytest
from typer.testing import CliRunner

from turntrace.bench.dockerfile import read_dockerfile
from turntrace.bench.loading import load_suite
from turntrace.bench.plain_child import run_plain_child
from turntrace.bench.proofs import prove_task
from turntrace.cli.main import app

TEST_SH = "cd /app\nif python3 /tests/test_it.py; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
TEST_PY = 'from pathlib import Path\nassert Path("/app/out.txt").read_text() == Path("/app/in.txt").read_text().upper()\n'


def write_task(folder, **changes):
    """A task that upper-cases a file; changes by path, None removes."""
    files = {
        "task.toml": 'version = "1.0"\n[metadata]\ncategory = "file work"\n[agent]\ntimeout_sec = 120.0\n[verifier]\ntimeout_sec = 30.0\n',
        "instruction.md": "Write /app/in.txt in capitals to `/app/out.txt`. The folder is /app.\n",
        "environment/Dockerfile": '# base\nFROM python:3.13\nWORKDIR /app\nCOPY in.txt \\\n  ./\nCMD ["bash"]\n',
        "environment/in.txt": "some words\n",
        "tests/test.sh": TEST_SH,
        "tests/test_it.py": TEST_PY,
        "solution/solve.sh": "#!/bin/bash\ntr a-z A-Z < /app/in.txt > /app/out.txt\n",
        **changes,
    }
    for name, text in files.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def harbor(*words):
    """Run the command in this process."""
    return CliRunner().invoke(app, ["bench", "import", "harbor", *map(str, words)])


def test_a_task_of_files_is_taken_and_judged(tmp_path):
    """Paths move into the workspace, the reward decides, and the solution's patch comes from running it."""
    write_task(tmp_path / "tasks" / "upper")
    words = (tmp_path / "tasks", "--into", tmp_path / "suite", "--solve")
    assert harbor(*words, "--dry-run").stdout == "upper: taken\n"
    assert not (tmp_path / "suite").exists()
    assert harbor(*words).exit_code == 0
    [task] = load_suite(tmp_path / "suite").tasks
    assert (task.id, task.task_class, task.timeout_s, task.oracle.timeout_s) == (
        "upper",
        "file-work",
        120.0,
        30.0,
    )
    assert task.prompt == "Write in.txt in capitals to `out.txt`. The folder is ./."
    assert sorted(path.name for path in task.fixture.iterdir()) == ["in.txt"]
    proof = prove_task(task, run_plain_child)
    assert proof.faults == ()
    again = harbor(*words)
    assert (again.exit_code, "is a task already" in again.stdout) == (1, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"environment/Dockerfile": "FROM a\nWORKDIR /app\nRUN apt-get install -y x\n"},
            "needs a container for: RUN apt-get install -y x",
        ),
        ({"environment/Dockerfile": "FROM a\nWORKDIR /app\nENV A=1\n"}, "needs a container for: ENV A=1"),
        (
            {"environment/Dockerfile": "FROM a\nWORKDIR /app\nCOPY --from=b x /app/\n"},
            "needs a container for: COPY --from=b x /app/",
        ),
        (
            {"environment/Dockerfile": "FROM a\nWORKDIR /app\nCOPY in.txt /etc/\n"},
            "needs a container for: COPY in.txt /etc/",
        ),
        (
            {"environment/Dockerfile": 'FROM a\nWORKDIR /app\nCOPY ["in.txt\n'},
            'needs a container for: COPY ["in.txt',
        ),
        (
            {"environment/Dockerfile": "FROM a\nWORKDIR /app\nCOPY gone.txt .\n"},
            "copies gone.txt, which is not there",
        ),
        ({"environment/Dockerfile": "FROM a\n"}, "has no WORKDIR of its own"),
        ({"environment/Dockerfile": None}, "needs a container for: an image without a Dockerfile"),
        ({"environment/docker-compose.yaml": "x"}, "needs several containers"),
        ({"tests/test.sh": "apt-get update\n"}, "has tests/test.sh, which runs apt-get"),
        ({"tests/test.sh": TEST_SH + "cat /etc/passwd\n"}, "has tests/test.sh, which uses /etc/passwd"),
        (
            {"tests/test.sh": TEST_SH.replace("reward.txt", "reward.json")},
            "has tests/test.sh, which writes a reward.json",
        ),
        ({"tests/test.sh": None}, "has no tests/test.sh"),
        ({"instruction.md": "Start the server in /srv/www.\n"}, "has instruction.md, which uses /srv/www."),
        ({"solution/solve.sh": "exit 3\n"}, "has a solution that ends with status 3"),
        ({"solution/solve.sh": None}, "has no solution/solve.sh"),
        ({"task.toml": "x ="}, "has no readable task.toml: Invalid value (at end of document)"),
        ({"task.toml": "[verifier]\nenv = {A = '1'}\n"}, "gives variables to its verifier"),
        ({"task.toml": "[environment]\ngpus = 1\n"}, "asks for gpus"),
        ({"task.toml": "[[steps]]\nname = 'a'\n"}, "has several steps"),
    ],
)
def test_what_needs_a_container_is_left_out_by_name(tmp_path, changes, reason):
    """Each feature is named, nothing is written."""
    write_task(tmp_path / "task", **changes)
    found = harbor(tmp_path / "task", "--into", tmp_path / "suite", "--json", "--solve")
    assert found.exit_code == 1
    [row] = json.loads(found.stdout)["tasks"]
    assert (row["taken"], reason in row["reasons"]) == (False, True), row
    assert not (tmp_path / "suite").exists()


def test_links_that_lead_out_are_refused(tmp_path):
    """A link in a task is not followed into the suite."""
    task = write_task(tmp_path / "task")
    (task / "environment" / "in.txt").unlink()
    (task / "environment" / "in.txt").symlink_to("/etc/hostname")
    (task / "environment" / "data").symlink_to("/etc")
    (task / "environment" / "Dockerfile").write_text("FROM a\nWORKDIR /app\nCOPY in.txt .\nCOPY data data\n")
    said = harbor(task, "--into", tmp_path / "suite").stdout
    assert "holds environment/in.txt, which is a symbolic link that leads out" in said
    assert "copies data, which leads out" in said
    assert "copies in.txt, which is not there" in said


def test_folders_are_copied(tmp_path):
    """COPY . and COPY of a folder keep what is in them; the Dockerfile stays outside."""
    docker = "FROM a\nWORKDIR /app\nWORKDIR sub\nCOPY . .\nCOPY more more\n"
    task = write_task(
        tmp_path / "task",
        **{
            "environment/Dockerfile": docker,
            "environment/more/a.txt": "1",
            "tests/test.sh": "true",
            "tests/test_it.py": "",
            "instruction.md": "Go.",
        },
    )
    assert harbor(task, "--into", tmp_path / "suite").exit_code == 0
    fixture = load_suite(tmp_path / "suite").tasks[0].fixture
    assert sorted(path.name for path in fixture.rglob("*")) == ["a.txt", "in.txt", "more"]


def test_where_there_is_no_task(tmp_path):
    """Status 2 and what is missing; a suite that cannot be written too."""
    assert "is no folder" in harbor(tmp_path / "none").stderr
    assert "holds no task" in harbor(tmp_path).stderr
    task = write_task(tmp_path / "task")
    (tmp_path / "file").write_text("")
    found = harbor(task, "--into", tmp_path / "file")
    assert (found.exit_code, "cannot write" in found.stderr) == (2, True)


def test_a_dockerfile_is_read_without_a_container():
    """Forms of COPY, words in any case, goals with and without a slash."""
    image = read_dockerfile('from a\nworkdir /w\ncopy a b\nCOPY ["c d", "e/"]\nCOPY f g h/\n')
    assert (image.workdir, image.needs) == ("/w", ())
    assert image.copies == (("a", "b"), ("c d", "e/c d"), ("f", "h/f"), ("g", "h/g"))
