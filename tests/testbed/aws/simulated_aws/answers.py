"""Owns the value that stands for an HTTP answer, and how AWS words an error in each protocol.

It must not know any service's behaviour, only the shapes on the wire.
"""

import json
import uuid
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

QUERY_NAMESPACES = {
    "autoscaling": "http://autoscaling.amazonaws.com/doc/2011-01-01/",
    "iam": "https://iam.amazonaws.com/doc/2010-05-08/",
    "sts": "https://sts.amazonaws.com/doc/2011-06-15/",
}


@dataclass
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def as_json(value: object, status: int = 200) -> Answer:
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(value).encode())


def error(service: str, status: int, code: str, message: str) -> Answer:
    """An AWS error in the protocol of the service."""
    request_id = str(uuid.uuid4())
    headers = {"x-amzn-requestid": request_id}
    if service == "ec2":
        headers["Content-Type"] = "text/xml;charset=UTF-8"
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
            f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
            f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
        )
    elif service == "ssm":
        headers["Content-Type"] = "application/x-amz-json-1.1"
        headers["x-amzn-errortype"] = code
        text = json.dumps({"__type": code, "message": message})
    elif service == "eks":
        headers["Content-Type"] = "application/json"
        headers["x-amzn-errortype"] = code
        text = json.dumps({"message": message})
    else:
        headers["Content-Type"] = "text/xml"
        sender = "Sender" if status < 500 else "Receiver"
        namespace = QUERY_NAMESPACES.get(service, "")
        text = (
            f'<ErrorResponse xmlns="{namespace}"><Error><Type>{sender}</Type>'
            f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        )
    return Answer(status, headers, text.encode())
