"""A function that is to be renamed in every module of a package, but not in the data it is named in."""

import ast
import random
from collections.abc import Callable
from typing import Any, Final

from turntrace.bench.variants import Attempt, Variant

__all__ = ["FACTS", "ORACLE", "TASK_CLASS", "calls", "reference", "structure", "used_names", "variant"]

TASK_CLASS: Final = "edit"
FACTS: dict[str, Any] = {}
_PACKAGES: Final = ("store", "depot", "market", "kiosk")
_OLD: Final = ("total_price", "sum_cost", "gross_of", "full_charge")
_NEW: Final = ("order_total", "amount_due", "cart_value", "payable")


def variant(seed: int) -> Variant:
    """The task of ``seed``."""
    draw = random.Random(f"edit-rename {seed}")  # noqa: S311 - a fixture, no secret
    package, old, new = draw.choice(_PACKAGES), draw.choice(_OLD), draw.choice(_NEW)
    rate = draw.randrange(6, 24)
    renamed = _modules(package, new, old, rate)
    return Variant(
        prompt=(
            f"Rename the function `{old}` to `{new}` in the whole package `{package}`: its definition, its imports "
            f'and its calls; the old name must not stay as an alias. The key "{old}" in the record that '
            "`summary` returns is read by other programs and stays."
        ),
        files={f"{package}/__init__.py": '"""A small shop."""\n', **_modules(package, old, old, rate)},
        solution=Attempt(files=renamed),
        wrong={
            "renames-the-key": Attempt(files=_modules(package, new, new, rate)),
            "leaves-an-alias": Attempt(
                files={
                    **renamed,
                    f"{package}/pricing.py": renamed[f"{package}/pricing.py"] + f"\n\n{old} = {new}\n",
                }
            ),
        },
        facts={"package": package, "old": old, "new": new, "rate": rate},
    )


def _modules(package: str, function: str, key: str, rate: int) -> dict[str, str]:
    return {
        f"{package}/pricing.py": f'''"""Prices in cents."""

RATE_PERCENT = {rate}


def {function}(amounts):
    """The sum of the amounts with tax."""
    subtotal = sum(amounts)
    return subtotal + subtotal * RATE_PERCENT // 100


def discounted(amounts, percent):
    """What is left to pay after a discount."""
    full = {function}(amounts)
    return full - full * percent // 100
''',
        f"{package}/cart.py": f'''"""Lines of a cart."""

from {package}.pricing import {function}


def lines(cart):
    """Name and price of each line with something in it."""
    return [(name, {function}([price] * count)) for name, price, count in cart if count > 0]
''',
        f"{package}/report.py": f'''"""What other programs read."""

from {package} import cart, pricing


def summary(lines):
    """The record of a cart."""
    amounts = [price * count for _, price, count in lines]
    return {{"{key}": pricing.{function}(amounts), "lines": len(cart.lines(lines))}}
''',
    }


def structure(files: dict[str, str]) -> list[str]:
    """The old name is nowhere in the code, the new one is defined where the old one was."""
    found = {path: used_names(text) for path, text in files.items() if path.endswith(".py")}
    stale = sorted(path for path, names in found.items() if FACTS["old"] in names)
    faults = [f"{path} still uses the old name" for path in stale]
    if f"def {FACTS['new']}" not in found.get(f"{FACTS['package']}/pricing.py", set()):
        faults.append("the new function is not defined in pricing.py")
    return faults


def used_names(text: str) -> set[str]:
    """Every name in a program; definitions of functions once more with "def " before them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "attr", "name", "asname", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name.rpartition(".")[2])
        if isinstance(node, ast.FunctionDef):
            found.add(f"def {node.name}")
    return found


def calls(seed: int) -> list[tuple[str, list[Any]]]:
    """Each function six times, with carts drawn from the run's seed."""
    draw = random.Random(seed)  # noqa: S311 - inputs, no secret
    package = FACTS["package"]
    found: list[tuple[str, list[Any]]] = []
    for _ in range(6):
        amounts = [draw.randrange(1, 5000) for _ in range(draw.randrange(6))]
        cart = [[f"item {n}", draw.randrange(1, 900), draw.randrange(4)] for n in range(draw.randrange(2, 6))]
        found += [
            (f"{package}.pricing:{FACTS['new']}", [amounts]),
            (f"{package}.pricing:discounted", [[*amounts, 900], draw.randrange(5, 60)]),
            (f"{package}.cart:lines", [[*cart, ["one", 7, 1], ["none", 7, 0], ["less", 7, -1]]]),
            (f"{package}.report:summary", [cart]),
        ]
    return found


def reference(name: str, data: list[Any], percent: int = 0) -> Any:
    """What the functions return, in one formula for all."""

    def taxed(amount: int) -> int:
        return amount + amount * int(FACTS["rate"]) // 100

    if name == "lines":
        return [(line[0], taxed(line[1] * line[2])) for line in data if line[2] > 0]
    if name == "summary":
        sold = [line for line in data if line[2] > 0]
        return {FACTS["old"]: taxed(sum(line[1] * line[2] for line in sold)), "lines": len(sold)}
    full = taxed(sum(data))
    return full - full * percent // 100


ORACLE: Final[tuple[Callable[..., Any], ...]] = (structure, used_names, calls, reference)
