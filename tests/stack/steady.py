"""An agent that works steadily: OUT, seconds. It prints how long its longest turn took and what was dropped, as JSON."""

import json
import sys
import time

import turntrace as tt

out, seconds = sys.argv[1:]
handle = tt.configure(trace=out, metrics=False)
end_s = time.monotonic() + float(seconds)
longest_s, turns = 0.0, 0
while time.monotonic() < end_s:
    began = time.perf_counter()
    with tt.turn("steady"), tt.tool("work"):
        time.sleep(0.05)
    longest_s = max(longest_s, time.perf_counter() - began)
    turns += 1
began = time.monotonic()
handle.shutdown()
print(
    json.dumps(
        {
            "turns": turns,
            "longest_s": longest_s,
            "exit_s": time.monotonic() - began,
            "dropped": dict(handle.dropped),
        }
    )
)
