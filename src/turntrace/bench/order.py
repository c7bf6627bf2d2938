"""Which task runs when: round by round, each in an order drawn from the seed. Pure."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Turn", "run_seed", "schedule"]


class Turn(NamedTuple):
    """One planned run: the task's id, its iteration from 1, its place from 0."""

    task: str
    iteration: int
    position: int

    @property
    def key(self) -> tuple[str, int]:
        """What a run is known by when it is resumed."""
        return self.task, self.iteration


def schedule(tasks: Sequence[str], iterations: int, seed: int) -> Iterator[Turn]:
    """Iteration 1 of every task, then 2: what drifts with time hits all tasks alike.

    >>> [turn.key for turn in schedule(["a", "b"], 2, seed=1)]
    [('a', 1), ('b', 1), ('b', 2), ('a', 2)]
    """
    position = 0
    for iteration in range(1, iterations + 1):
        order = list(tasks)
        random.Random(f"{seed}/{iteration}").shuffle(order)  # noqa: S311 - an order, no secret
        for task in order:
            yield Turn(task, iteration, position)
            position += 1


def run_seed(seed: int, task: str, iteration: int) -> int:
    """The seed of one run: the same however the runs are ordered, divided or resumed.

    >>> run_seed(1, "a", 1) == run_seed(1, "a", 1) != run_seed(1, "a", 2)
    True
    """
    return random.Random(f"{seed}/{task}/{iteration}").getrandbits(32)  # noqa: S311 - as above
