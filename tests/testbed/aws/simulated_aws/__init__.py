"""A simulated AWS for tests: moto's back ends behind a layer that repairs what moto gets wrong.

The package owns the answers of the AWS services that the operator calls (autoscaling, ec2, eks,
iam, ssm, sts), the record of these calls and the faults injected into them. It must never reach
the network: everything lives in the memory of one process.
"""
