"""An agent that runs turn after turn for some seconds: OUT, the metrics argument of configure(), seconds."""

import ast
import sys
import time

import turntrace as tt

out, metrics, *seconds = sys.argv[1:]
tt.configure(trace=out, metrics=ast.literal_eval(metrics))
end_s = time.monotonic() + float(*seconds or ["6"])
while time.monotonic() < end_s:
    with tt.turn("server"), tt.tool("work"):
        time.sleep(0.1)
