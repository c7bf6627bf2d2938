"""Written by turntrace from the template edit-rename, seed 1; change the template instead."""

import ast
import random
import re
from typing import Any

FACTS = {'package': 'market', 'old': 'total_price', 'new': 'order_total', 'rate': 18}


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
