"""The behaviour of the AWS services: subclasses of moto's back ends and request handlers.

Modules here must not know how a request arrived, nor of faults and records.
"""
