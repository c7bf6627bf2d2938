"""The model server in a process of its own, so that it and the client do not wait for one lock.

Prints its address. Then each line of standard input is a command: ``{"script": SESSION, "steps": [...]}`` is
answered with ``null`` once it is in force, ``{"log": SESSION}`` with what went over the wire. It ends with
standard input.
"""

import json
import sys
from dataclasses import asdict

from frameworks.model_server import ModelServer
from frameworks.steps import Step


def main() -> None:
    """Serve until standard input ends."""
    scripted = 0
    with ModelServer() as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            asked, said = json.loads(line), None
            if "script" in asked:
                scripted += len(asked["steps"])
                server.script([Step(**step) for step in asked["steps"]], asked["script"])
            else:
                wire = server.settled(scripted)
                said = [asdict(one) for one in wire if one.session == asked["log"]]
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
