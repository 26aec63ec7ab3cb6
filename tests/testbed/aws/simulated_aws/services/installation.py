"""Owns the replacement of moto's classes by those of this package, and their reset.

It is the only place that patches moto. It must not hold behaviour.
"""

import functools

from .. import environment  # noqa: F401 - before moto

import moto.autoscaling.models as autoscaling_models
import moto.core.responses as core_responses
import moto.ec2.models.amis as ami_models
import moto.ec2.models.launch_templates as template_models
import moto.ec2.utils as ec2_filters
import moto.eks.models as eks_models
import moto.ssm.models as ssm_models
from moto.autoscaling.models import autoscaling_backends
from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.ec2.models import ec2_backends
from moto.eks.models import eks_backends
from moto.iam.models import iam_backends
from moto.iam.responses import IamResponse
from moto.ssm.models import ssm_backends
from moto.ssm.responses import SimpleSystemManagerResponse as SsmRequests
from moto.sts.responses import TokenResponse

from .autoscaling_backend import SimulatedAutoScaling
from .autoscaling_requests import AutoScalingRequests
from .ec2_backend import SimulatedEc2
from .ec2_filters import matches
from .ec2_requests import Ec2Requests
from .eks_clusters import EksRequests, SimulatedCluster, SimulatedEks
from .images import Image
from .launch_template import SimulatedTemplate
from .managed_policies import SimulatedIam
from .member import Member
from .ssm_parameters import SimulatedParameter, SimulatedSsm

__all__ = [
    "autoscaling_backends",
    "ec2_backends",
    "eks_backends",
    "handlers",
    "iam_backends",
    "install",
    "reset",
    "ssm_backends",
]


def handlers() -> dict[str, type]:
    return {
        "autoscaling": AutoScalingRequests,
        "ec2": Ec2Requests,
        "eks": EksRequests,
        "iam": IamResponse,
        "ssm": SsmRequests,
        "sts": TokenResponse,
    }


def install() -> None:
    """Put the classes of this package in place. Calling it again starts from nothing."""
    reset()
    autoscaling_backends.backend = SimulatedAutoScaling
    ec2_backends.backend = SimulatedEc2
    eks_backends.backend = SimulatedEks
    iam_backends.backend = SimulatedIam
    ssm_backends.backend = SimulatedSsm

    autoscaling_models.InstanceState = Member
    template_models.LaunchTemplate = SimulatedTemplate
    ami_models.Ami = Image
    eks_models.Cluster = SimulatedCluster
    ssm_models.Parameter = SimulatedParameter
    ec2_filters.is_filter_matching = matches

    # moto lists every method of the handler class anew for each call: a millisecond for EC2.
    if not hasattr(core_responses.method_names_from_class, "cache_info"):
        core_responses.method_names_from_class = functools.cache(core_responses.method_names_from_class)


def reset() -> None:
    """Drop every back end. moto's own reset builds each of them once more before it drops them."""
    for backends in list(BackendDict._instances):
        backends.clear()
    BackendDict._instances.clear()
    reset_model_data()
