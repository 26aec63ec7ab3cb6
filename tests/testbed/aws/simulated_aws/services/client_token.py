"""Owns idempotency by client token: the first answer again, and no second effect.

It must not know which action it serves.
"""

import copy
import json
from collections.abc import Callable

from moto.ec2.exceptions import EC2ClientError


class IdempotentParameterMismatch(EC2ClientError):
    code = "IdempotentParameterMismatch"
    message = (
        "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."
    )


class TokenMemory:
    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], tuple[str, dict]] = {}

    def once(self, action: str, parameters: dict, perform: Callable[[], dict]) -> dict:
        """Perform the action, unless its token was used before."""
        token = parameters.get("ClientToken")
        if not token:
            return perform()
        rest = {name: value for name, value in parameters.items() if name != "ClientToken"}
        fingerprint = json.dumps(rest, sort_keys=True, default=str)
        if (action, token) in self._answers:
            before, answer = self._answers[action, token]
            if before != fingerprint:
                raise IdempotentParameterMismatch
            return answer
        # A refused request does not use up its token.
        answer = copy.deepcopy(perform())
        self._answers[action, token] = (fingerprint, answer)
        return answer
