"""Written by turntrace from the template parallel-ledgers, seed 1; change the template instead."""

import ast
import random
import re
from typing import Any

FACTS = {'sum': 27211, 'marks': 'bbdrf-bmzcg-gjtzd-mzrgr-jsrgs-grxkg'}


def answer(text: str) -> list[str]:
    """What is wrong with the last two lines of the answer."""
    faults = []
    for key, right in FACTS.items():
        said = re.findall(
            rf"^[ \t*`>]*{key}[`*]*[ \t]*:[ \t`*]*([^\s`*]+)", text, re.MULTILINE | re.IGNORECASE
        )
        if not said:
            faults.append(f"no line says {key}")
        elif said[-1] != str(right) or len(set(said)) > 1:
            faults.append(f"{key} is another")
    return faults
