"""Runs make targets one after the other, says how long each took, and ends with the tests they ran, added up.

``python tests/stages.py servers test-servers ...``; a stage that fails does not keep the others from running.
"""

import re
import subprocess
import sys
import time
from collections import Counter

SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s.*$")


def main(stages: list[str]) -> int:
    """Run the stages; the number of those that failed."""
    total: Counter[str] = Counter()
    told: list[str] = []
    failures = 0
    for stage in stages:
        began = time.monotonic()
        status, found = run(stage)
        total += found
        failures += status != 0
        told.append(f"{stage}: {time.monotonic() - began:.0f} s{'' if status == 0 else f', status {status}'}")
        print(f"--- {told[-1]}", flush=True)
    print("\n".join(["", *told]))
    print(
        f"{total['passed']} passed, {total['failed'] + total['errors'] + total['error']} failed, {total['skipped']} skipped"
    )
    return min(failures, 1)


def run(stage: str) -> tuple[int, Counter[str]]:
    """Run one target and show what it says; its status, and what pytest's last line counts."""
    found: Counter[str] = Counter()
    with subprocess.Popen(
        ["make", "--no-print-directory", stage], stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            summary = SUMMARY.match(line.strip())
            if summary:
                found = Counter(
                    {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", summary[1])}
                )
    return process.returncode, found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
