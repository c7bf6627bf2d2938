"""The model server in a process of its own, so that it and the client do not wait for one lock.

    python server_apart.py SESSIONS REPEATS

Prints its address, answers every session with the same streams, and prints its log when standard input ends.
"""

import json
import sys

from frameworks.model_server import ModelServer
from frameworks.steps import Step


def main() -> None:
    """Serve until standard input ends."""
    sessions, repeats = sys.argv[1].split(","), int(sys.argv[2])
    with ModelServer() as server:
        for session in sessions:
            server.script([Step(text="abcdef", chunks=3, ttft_s=0.03, gap_s=0.01)] * repeats, session)
        print(server.url, flush=True)
        sys.stdin.read()
        print(json.dumps(server.truth()["wire"]))


if __name__ == "__main__":
    main()
