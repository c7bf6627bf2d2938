"""Whether what a suite wants to run may run here."""

from typing import Literal

from turntrace.bench.tasks import CommandOracle, Origin, ProgramOracle, Suite

__all__ = ["Isolation", "commands_of", "refusal"]

Isolation = Literal["sandbox", "process"]


def commands_of(suite: Suite) -> tuple[str, ...]:
    """Everything that running the suite would execute of its own, as ``task id: what``."""
    found: list[str] = []
    for task in suite.tasks:
        found += [f"{task.id}: set-up {argv[0]}" for argv in task.set_up]
        match task.oracle:
            case CommandOracle(argv=argv):
                found.append(f"{task.id}: oracle {argv[0]}")
            case ProgramOracle():
                found.append(f"{task.id}: oracle.py")
            case None:
                pass
    return tuple(found)


def refusal(suite: Suite, isolation: Isolation, *, trust_manifest: bool) -> str | None:
    """Why the suite must not be run like this, None when it may.

    In the sandbox everything may run. Without it a suite's own commands run only if it is shipped
    (its hash is the published one) or if the caller trusts it.
    """
    if isolation == "sandbox" or trust_manifest or suite.origin is Origin.SHIPPED:
        return None
    commands = commands_of(suite)
    if not commands:
        return None
    return (
        f"{suite.path} would run {len(commands)} commands of its own without a sandbox "
        f"(the first is {commands[0]}); use --isolation sandbox, or read them and add --trust-manifest"
    )
