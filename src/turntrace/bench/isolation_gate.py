"""What a sandboxed command is started through when a server of the harness's is to be reachable inside.

Run as a script with the number of a socket, a port and a command. It listens on the port of the
sandbox's own loopback, hands that socket out through the given one, waits for a byte and becomes the
command: a socket belongs to the network it was made in, whoever accepts on it.
"""

import os
import socket
import sys

__all__ = ["main"]


def main(argv: list[str]) -> None:
    """Never returns unless something is wrong."""
    with socket.socket(fileno=int(argv[0])) as outside:
        with socket.create_server(("127.0.0.1", int(argv[1])), backlog=128) as listening:
            socket.send_fds(outside, [b"."], [listening.fileno()])
        go = outside.recv(1)
    if go:
        os.execvp(argv[2], argv[2:])  # noqa: S606 - becoming the command is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
