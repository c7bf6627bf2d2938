"""The proof of a suite as a table: a row for each task, a column for each kind of attempt."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from turntrace.bench.proofs import Proof
from turntrace.bench.tasks import VerdictStatus

__all__ = ["COLUMNS", "matrix_json", "matrix_markdown", "matrix_text"]

COLUMNS: Final[tuple[tuple[str, VerdictStatus], ...]] = (
    ("untouched", VerdictStatus.FAIL),
    ("empty", VerdictStatus.FAIL),
    ("cheat", VerdictStatus.FAIL),
    ("wrong", VerdictStatus.FAIL),
    ("mutant", VerdictStatus.FAIL),
    ("solution", VerdictStatus.PASS),
)
"""Each kind of attempt and how it has to end."""

_HEADS: Final = ("task", *(f"{kind} {'passes' if status == 'pass' else 'fails'}" for kind, status in COLUMNS))


def matrix_text(proofs: Sequence[Proof]) -> Iterator[str]:
    """The table in columns, then every fault on a line of its own."""
    rows = [_HEADS, *(_row(proof) for proof in proofs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for proof in proofs:
        yield from (f"{proof.task}: {fault}" for fault in proof.faults)


def matrix_markdown(proofs: Sequence[Proof]) -> Iterator[str]:
    """The table as the documents have it."""
    yield "| " + " | ".join(_HEADS) + " |"
    yield "|" + " --- |" * len(_HEADS)
    for proof in proofs:
        yield "| " + " | ".join(_row(proof)) + " |"


def matrix_json(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """Every trial with its verdict."""
    return [
        {
            "task": proof.task,
            "class": proof.task_class,
            "proven": proof.is_proven,
            "equivalent": proof.equivalent,
            "faults": list(proof.faults),
            "trials": [
                {
                    "kind": trial.kind,
                    "name": trial.name,
                    "verdict": trial.verdict.status.value,
                    "reason": trial.verdict.reason,
                }
                for trial in proof.trials
            ],
        }
        for proof in proofs
    ]


def _row(proof: Proof) -> tuple[str, ...]:
    cells = [proof.task]
    for kind, status in COLUMNS:
        held, count = proof.count(kind, status)
        alike = f" + {proof.equivalent} equivalent" if kind == "mutant" and proof.equivalent else ""
        cells.append(f"{held} of {count}{alike}")
    return tuple(cells)
