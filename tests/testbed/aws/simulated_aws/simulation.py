"""Owns the state that is shared by all calls: the lock, the record, the faults, moto's back ends.

It must not know about HTTP.
"""

import threading

from . import clock, environment  # noqa: F401 - the environment comes before moto
from .call_record import CallRecord
from .environment import ACCOUNT_ID
from .faults import FaultPlan
from .services import installation


class Simulation:
    def __init__(self) -> None:
        # moto's back ends are not safe under threads. The interpreter runs one thread at a time
        # anyhow, so one lock costs nothing and makes each call atomic, as it is on AWS.
        self.lock = threading.RLock()
        self.record = CallRecord()
        self.faults = FaultPlan()
        installation.install()
        clock.take_over_moto()

    def ec2(self, region: str) -> object:
        return installation.ec2_backends[ACCOUNT_ID][region]

    def autoscaling(self, region: str) -> object:
        return installation.autoscaling_backends[ACCOUNT_ID][region]

    def ssm(self, region: str) -> object:
        return installation.ssm_backends[ACCOUNT_ID][region]

    def eks(self, region: str) -> object:
        return installation.eks_backends[ACCOUNT_ID][region]

    def iam(self) -> object:
        return installation.iam_backends[ACCOUNT_ID]["aws"]

    def all_autoscaling(self) -> list:
        return list(installation.autoscaling_backends[ACCOUNT_ID].values())

    def advance(self) -> None:
        """Let everything happen that is due by the clock. Nothing else moves time forward."""
        for backend in self.all_autoscaling():
            backend.advance()

    def reset(self) -> None:
        """Forget everything. Sequence numbers of calls go on."""
        with self.lock:
            self.faults.clear()
            self.record.forget()
            clock.set_offset(0)
            installation.reset()
