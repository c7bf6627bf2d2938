"""What a shell does with a job on its terminal, and no more: ``job_shell.py EVENTS CMD ARGS...``.

The job runs in a process group of its own in the foreground. Each time it stops, a line goes to the file
EVENTS and the job is continued in the foreground; the last line says how it ended.
"""

import os
import signal
import sys
from pathlib import Path


def main():
    """Run the job to its end."""
    events = Path(sys.argv[1]).open("a", buffering=1)  # noqa: SIM115 - it lives as long as the process
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - that is what a shell does
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            events.write(f"ended {os.waitstatus_to_exitcode(status)}\n")
            return
        events.write(f"stopped {os.WSTOPSIG(status)}\n")
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)


main()
