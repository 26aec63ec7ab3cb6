"""The side door for tests: seeding, inspection and faults, in JSON under /_simulation/.

Nothing here is recorded as a call of AWS, and nothing here may be reachable through an AWS action.
"""
