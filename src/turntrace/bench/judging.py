"""The judge: a task, a finished workspace and the agent's last words in, a verdict out."""

from pathlib import Path

from turntrace.bench.tasks import RunChild, Task, Verdict, VerdictStatus

__all__ = ["judge"]


def judge(task: Task, workspace: Path, answer: str, seed: int, run_child: RunChild) -> Verdict:
    """What the oracle of ``task`` says of ``workspace`` and ``answer``.

    The agent must be dead. Inputs are drawn from ``seed``. Nothing of the agent runs in this process.
    """
    del workspace, answer, seed, run_child
    if task.oracle is None:
        return Verdict(status=VerdictStatus.NONE, reason="the task has no oracle", details={})
    raise NotImplementedError
