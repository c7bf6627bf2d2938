"""What may stand in suite.toml, task.toml and zero's manifest. Loaded only where a suite is read."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["Equivalent", "OracleTable", "ProbeTable", "SuiteTable", "TaskTable", "ZeroSuite", "ZeroTask"]

Filled = Annotated[str, StringConstraints(pattern=r"\S")]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Argv = Annotated[list[Filled], Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class _Table(BaseModel):
    """No unknown field, no conversion: a number in quotes is an error rather than a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SuiteTable(_Table):
    """suite.toml."""

    id: Identifier
    name: str = ""
    description: str = ""
    build_only_classes: list[Identifier] = []


class ProbeTable(_Table):
    """``[parallel_probe]`` of task.toml."""

    handlers: Annotated[int, Field(ge=2, le=64)] = 2
    timeout_s: Seconds = 5.0


class OracleTable(_Table):
    """``[oracle]`` of task.toml: a command, where no oracle.py is there."""

    command: Argv
    output_has: list[Filled] = []
    timeout_s: Seconds = 600.0


class Equivalent(_Table):
    """``[[equivalent]]`` of task.toml: a mutant of the solution that does the same, and why it does."""

    mutant: Filled
    reason: Filled


class TaskTable(_Table):
    """task.toml. The task's id is the name of its folder."""

    task_class: Annotated[Identifier, Field(alias="class")]
    fixture: Filled = "fixture"
    allowed: list[Filled] = []
    strict: bool = False
    timeout_s: Seconds = 600.0
    expect: Literal["pass", "fail"] | None = None
    set_up: list[Argv] = []
    parallel_probe: ProbeTable | None = None
    oracle: OracleTable | None = None
    equivalent: list[Equivalent] = []
    latency_only: bool = False


class ZeroTask(_Table):
    """A task of zero's manifest."""

    id: Filled
    name: str = ""
    task_class: Annotated[str, Field(alias="class")] = ""
    prompt: Filled
    fixture: Annotated[str, Field(alias="workspaceFixture")] = ""
    command: Annotated[Argv | None, Field(alias="verificationCommand")] = None
    oracle_test: Annotated[str, Field(alias="oracleTest")] = ""


class ZeroSuite(_Table):
    """zero's manifest."""

    id: Filled
    name: str = ""
    description: str = ""
    tasks: Annotated[list[ZeroTask], Field(min_length=1)]
    build_only: Annotated[list[Filled], Field(alias="buildOnlyClasses")] = []
