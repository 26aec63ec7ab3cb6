"""Owns the path of one request: administration or AWS, record, faults, answer.

It must not hold behaviour of a service nor of the administration's routes.
"""

import io
import time
import traceback

from . import answers
from .administration import routes
from .answers import Answer
from .dispatch import Dispatcher
from .faults import HANG_SECONDS
from .http_server import ABANDON
from .identification import Call, identify
from .simulation import Simulation

ADMINISTRATION = "/_simulation/"


class Application:
    def __init__(self) -> None:
        self.simulation = Simulation()
        self._dispatcher = Dispatcher(self.simulation)

    def __call__(self, environ: dict, start_response: object) -> list[bytes]:
        body = environ["wsgi.input"].read()
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"].startswith(ADMINISTRATION):
            answer = routes.answer(self.simulation, environ, body)
        else:
            answer = self._answer_aws(environ, body)
        if answer is None:
            environ[ABANDON] = True
            return []
        # The HTTP server adds the phrase.
        start_response(str(answer.status), list(answer.headers.items()))
        return [answer.body]

    def _answer_aws(self, environ: dict, body: bytes) -> Answer | None:
        call = identify(environ, body)
        entry = self.simulation.record.begin(call)
        verdict = self.simulation.faults.judge(call)
        if verdict.latency_seconds:
            time.sleep(verdict.latency_seconds)
        fault = verdict.fault
        answer = None
        if fault is None or fault.when == "after":
            answer = self._perform(call, environ)
        if fault is not None and fault.hang:
            verdict.released.wait(HANG_SECONDS)
            return None
        if fault is not None:
            answer = answers.error(call.service or "", fault.status, fault.code, fault.message)
        self.simulation.record.finish(entry, answer)
        return answer

    def _perform(self, call: Call, environ: dict) -> Answer:
        try:
            return self._dispatcher.perform(call, environ)
        except NotImplementedError as missing:
            message = f"The simulation has no {call.service}:{call.action} ({missing})."
            return answers.error(call.service or "", 400, "InvalidAction", message)
        except Exception as problem:  # noqa: BLE001 - a gap of the simulation must be seen, not fatal
            traceback.print_exc()
            message = f"The simulation failed on {call.service}:{call.action}: {problem!r}"
            return answers.error(call.service or "", 500, "InternalFailure", message)
