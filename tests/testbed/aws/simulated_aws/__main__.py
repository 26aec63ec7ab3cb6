"""Owns the command line: where to listen, and when to end.

It must not hold any behaviour of AWS.
"""

import argparse
import contextlib
import os
import sys
import threading

from . import environment  # noqa: F401 - before anything of moto


def main() -> None:
    parser = argparse.ArgumentParser(prog="simulated_aws", description="A simulated AWS for tests.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port")
    parser.add_argument(
        "--exit-with-stdin",
        action="store_true",
        help="end when standard input closes, so that nothing outlives the process that started it",
    )
    arguments = parser.parse_args()

    from .application import Application
    from .http_server import Server

    if arguments.exit_with_stdin:
        threading.Thread(target=_exit_with_stdin, daemon=True).start()
    server = Server(arguments.host, arguments.port, Application())
    print(f"listening on {arguments.host}:{server.server_address[1]}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


def _exit_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    # At once: threads may hang in a fault on purpose.
    os._exit(0)


if __name__ == "__main__":
    main()
