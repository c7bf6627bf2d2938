"""``-k``: words over ids and classes with and, or and not, as test runners have it."""

import ast
import re
from typing import Final

from turntrace.bench.tasks import Suite, Task
from turntrace.errors import ConfigurationError

__all__ = ["selected"]

_TOKEN: Final = re.compile(r"\s*([()]|[\w.-]+)")
_LOGIC: Final = frozenset({"and", "or", "not", "(", ")"})


def selected(suite: Suite, expression: str | None) -> tuple[Task, ...]:
    """The tasks of whose id or class the words of ``expression`` are part, all of them for None.

    Raises:
        ConfigurationError: it is no expression, or keeps none.
    """
    if expression is None:
        return suite.tasks
    words, tree = _parsed(expression)
    kept = tuple(task for task in suite.tasks if _holds(tree, words, f"{task.id} {task.task_class}"))
    if not kept:
        raise ConfigurationError(f"-k {expression} keeps none of the {len(suite.tasks)} tasks of {suite.id}")
    return kept


def _parsed(expression: str) -> tuple[list[str], ast.expr]:
    """The words, and the logic over their numbers: a word may hold dashes, which Python would subtract."""
    words: list[str] = []
    logic: list[str] = []
    at = 0
    while at < len(expression.rstrip()):
        match = _TOKEN.match(expression, at)
        if match is None:
            logic.append("(")  # what is no word breaks the logic
            break
        at = match.end()
        if match[1] in _LOGIC:
            logic.append(match[1])
        else:
            logic.append(f"w{len(words)}")
            words.append(match[1])
    try:
        return words, ast.parse(" ".join(logic), mode="eval").body
    except SyntaxError as error:
        raise ConfigurationError(
            f"-k {expression}: write words of ids and classes with and, or, not"
        ) from error


def _holds(tree: ast.expr, words: list[str], text: str) -> bool:
    match tree:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_holds(value, words, text) for value in values)
        case ast.BoolOp(values=values):
            return any(_holds(value, words, text) for value in values)
        case ast.UnaryOp(operand=operand):
            return not _holds(operand, words, text)
        case ast.Name(id=name):
            return words[int(name[1:])] in text
        case _:
            raise ConfigurationError("-k: write words of ids and classes with and, or, not")
