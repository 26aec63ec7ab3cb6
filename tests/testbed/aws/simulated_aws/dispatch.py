"""Owns the way from an identified call to the service's handlers.

It calls moto's response classes directly, without moto's Flask applications: the service is known
already, and this halves the cost of a call. It must not hold behaviour of a service.
"""

from moto.core.request import Request

from . import answers
from .answers import Answer
from .identification import Call
from .services import installation


class _ServerRequest(Request):
    """Tells moto that the HTTP server supplies the Date header."""

    from_wsgi_server = True


class Dispatcher:
    def __init__(self, simulation: object) -> None:
        self._simulation = simulation
        self._handlers = installation.handlers()

    def perform(self, call: Call, environ: dict) -> Answer:
        handler = self._handlers.get(call.service or "")
        if handler is None or call.action is None:
            message = f"Could not find operation {call.action} of service {call.service}."
            return answers.error(call.service or "", 404, "UnknownOperationException", message)
        request = _ServerRequest(environ)
        with self._simulation.lock:
            self._simulation.advance()
            status, headers, body = handler.dispatch(request, request.raw_url, request.headers)
        content = body.encode() if isinstance(body, str) else bytes(body or b"")
        plain = {name: str(value) for name, value in headers.items() if name.lower() not in _OMITTED}
        return Answer(int(status), plain, content)


# Set by the HTTP server, or of moto's own making.
_OMITTED = ("status", "date", "content-length", "server")
