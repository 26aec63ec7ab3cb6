"""Owns the process environment that moto reads while it is imported.

Import this module before anything of moto. It must not import moto itself.
"""

import os

ACCOUNT_ID = "123456789012"
DEFAULT_REGION = "us-west-2"

_SETTINGS = {
    # One account for everybody, whatever the credentials.
    "MOTO_ACCOUNT_ID": ACCOUNT_ID,
    # Without these AttachRolePolicy cannot find AmazonEKSWorkerNodePolicy and its like.
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
    # moto's stock images have invented dates and identifiers; tests register the images they use.
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ACCESS_KEY_ID": "simulated",
    "AWS_SECRET_ACCESS_KEY": "simulated",
    "AWS_DEFAULT_REGION": DEFAULT_REGION,
    # The developer's own AWS configuration must play no part.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def prepare() -> None:
    """Set the environment. Calling it again changes nothing."""
    os.environ.update(_SETTINGS)
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)


prepare()
