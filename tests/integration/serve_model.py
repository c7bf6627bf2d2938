"""A bundled model server as a process: prints its address and serves until it is killed."""

import threading

from turntrace.demo.model_server import ModelServer
from turntrace.demo.scenario import DEMO_SCRIPT

if __name__ == "__main__":
    with ModelServer(DEMO_SCRIPT, speed=20) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()
