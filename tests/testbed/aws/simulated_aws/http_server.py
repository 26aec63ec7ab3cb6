"""Owns the HTTP side: threads, kept connections, and answers that leave in one piece.

It must not know AWS; it hands each request to a WSGI application.
"""

import io
import socket
from http import HTTPStatus

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from . import clock

ABANDON = "simulation.abandon"


class QuietHandler(WSGIRequestHandler):
    """Keeps connections open, which werkzeug's own handler never does.

    It may, because it always reads the whole body before it answers: nothing is left over that
    could be taken for the next request.
    """

    protocol_version = "HTTP/1.1"
    # Small answers must not wait for the acknowledgement of the one before.
    disable_nagle_algorithm = True
    wbufsize = -1

    def run_wsgi(self) -> None:
        if self.headers.get("Expect", "").strip().lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self.environ = self.make_environ()
        body = self._read_body(environ)
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)

        status, headers = "500 Internal Server Error", []

        def start_response(given_status: str, given_headers: list, exc_info: object = None) -> None:
            nonlocal status, headers
            status, headers = given_status, given_headers

        try:
            content = b"".join(self.server.app(environ, start_response))
        except Exception as problem:  # noqa: BLE001 - one bad call must not end the thread silently
            self.log_error("%s", repr(problem))
            status, headers, content = "500 Internal Server Error", [], b""
        if environ.get(ABANDON):
            self.close_connection = True
            return
        self._send(status, headers, content)

    def _read_body(self, environ: dict) -> bytes:
        if environ.get("wsgi.input_terminated"):
            return environ["wsgi.input"].read()
        return self.rfile.read(int(environ.get("CONTENT_LENGTH") or 0))

    def _send(self, status: str, headers: list, content: bytes) -> None:
        code = int(status.split(" ", 1)[0])
        lines = [f"HTTP/1.1 {code} {_phrase(code)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        # Callers measure the skew of their clock by this header, so it follows the simulation.
        lines.append(f"Date: {self.date_time_string(int(clock.epoch_seconds()))}")
        lines.append(f"Content-Length: {len(content)}")
        if self.close_connection:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        self.wfile.write(head if self.command == "HEAD" else head + content)
        self.wfile.flush()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Successful requests are no news; the record of calls has them all."""


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


class Server(ThreadedWSGIServer):
    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(self, host: str, port: int, application: object) -> None:
        super().__init__(host, port, application, QuietHandler)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is normal in tests of faults."""
