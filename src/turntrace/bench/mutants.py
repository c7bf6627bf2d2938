"""Solutions with one thing changed: an oracle that cannot tell them from the solution proves little.

Left alone are docstrings, annotations and what a ``raise`` says: outcomes hold the type of an exception,
never its message, so a change of a message could not be seen and need not be.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

__all__ = ["answer_mutants", "program_mutants"]

_BINARY: Final[dict[type, type]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_COMPARED: Final[dict[type, type]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
Change = tuple[str, Callable[[], None]]


def program_mutants(source: str) -> Iterator[tuple[str, str]]:
    r"""Every mutant of a Python program, as (what was changed where, its text).

    >>> [name for name, _ in program_mutants("def f(a):\n    return a + 1\n")]
    ['2:4 return->None', '2:11 Add->Sub', '2:15 1->2']
    """
    met: Counter[str] = Counter()
    for number in range(len(_changes(ast.parse(source)))):
        tree = ast.parse(source)
        name, change = _changes(tree)[number]
        change()
        met[name] += 1
        again = f" #{met[name]}" if met[name] > 1 else ""  # a + b + c: two sums begin at one place
        yield name + again, ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _changes(tree: ast.Module) -> list[Change]:
    found: list[Change] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Raise):
            continue
        found += _changes_of(node)
        pending += reversed(
            [child for child in ast.iter_child_nodes(node) if not _is_left_alone(node, child)]
        )
    return found


def _is_left_alone(node: ast.AST, child: ast.AST) -> bool:
    """Docstrings, and annotations of arguments, results and names."""
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    return child is getattr(node, "annotation", None) or child is getattr(node, "returns", None)


def _changes_of(node: ast.AST) -> list[Change]:
    found: list[Change] = []
    match node:
        case ast.BinOp(op=op) if type(op) in _BINARY:
            found = [_set(node, "op", _BINARY[type(op)]())]
        case ast.Compare(ops=[op, *_]) if type(op) in _COMPARED:
            found = [_set(node, "ops", [_COMPARED[type(op)](), *node.ops[1:]])]
        case ast.BoolOp(op=op):
            found = [_set(node, "op", ast.Or() if isinstance(op, ast.And) else ast.And())]
        case ast.If() | ast.While() | ast.IfExp():
            found = [_set(node, "test", ast.UnaryOp(ast.Not(), node.test), "negated")]
        case ast.Return(value=value) if value is not None and not _is_none(value):
            found = [_set(node, "value", ast.Constant(None), "return->None")]
        case ast.Constant():
            found = _constant(node)
        case _:
            pass
    return found + (_removals(node) if isinstance(getattr(node, "body", None), list) else [])


def _set(node: Any, field: str, value: Any, label: str = "") -> Change:
    old = getattr(node, field)
    if isinstance(value, list):
        label = f"{type(old[0]).__name__}->{type(value[0]).__name__}"
    name = label or f"{type(old).__name__}->{type(value).__name__}"
    return f"{node.lineno}:{node.col_offset} {name}", lambda: setattr(node, field, value)


def _constant(node: ast.Constant) -> list[Change]:
    value: Any = node.value
    other: Any = None
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, int | float):
        other = value + 1
    elif isinstance(value, str) and value:
        other = f"{value}X"
    if other is None:
        return []
    return [_set(node, "value", other, f"{str(value)[:20]!s}->{str(other)[:20]!s}")]


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _removals(node: Any) -> list[Change]:
    """Each statement of the body that does something for its effect, replaced by nothing."""
    kinds = ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Delete
    return [
        _removal(node.body, index)
        for index, statement in enumerate(node.body)
        if isinstance(statement, kinds) and not _is_left_alone(node, statement)
    ]


def _removal(body: list[ast.stmt], index: int) -> Change:
    at = body[index]

    def remove() -> None:
        body[index] = ast.copy_location(ast.Pass(), at)

    return f"{at.lineno}:{at.col_offset} {type(at).__name__} removed", remove


def answer_mutants(answer: str) -> Iterator[tuple[str, str]]:
    r"""Every mutant of an answer of ``key: value`` lines: a line left out, a value changed.

    >>> [name for name, _ in answer_mutants("sum: 4\n")]
    ['line 1 left out', 'line 1 changed']
    """
    lines = answer.splitlines()
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        yield f"line {at + 1} left out", "\n".join([*lines[:at], *lines[at + 1 :]]) + "\n"
        head, _, value = line.rpartition(": ")
        other = re.sub(r"\d+", lambda found: str(int(found[0]) + 1), value)
        other = other if other != value else value[::-1]
        if other != value:
            changed = f"{head}: {other}" if head else other
            yield f"line {at + 1} changed", "\n".join([*lines[:at], changed, *lines[at + 1 :]]) + "\n"
