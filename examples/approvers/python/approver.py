"""An approver that asks a web service about every upgrade request.

    pip install -r requirements.txt
    ASK=https://change-board.example/upgrades python approver.py

For each request that waits it posts the JSON below to ASK and acts on the answer:

    question: {"namespace", "name", "uid", "group", "reason", "from", "target", "message"}
    answer:   {"decision": "approve" | "deny" | "wait", "reason": "shown in the group's history"}

It keeps no state: what it decides rests on the object and the answer alone, so it can be stopped and started at any time, and
several may run. Whoever decides first wins; the others are told so and go on.
"""

import json
import logging
import os
import time
import urllib.error
import urllib.request

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

GROUP, VERSION, PLURAL = "instancemgr.keikoproj.io", "v1alpha1", "instancegroupupgraderequests"
ASK = os.environ["ASK"]
# How long an answer may take, and the pause before a request that waits is asked about again, in seconds.
DEADLINE = 10
PAUSE = float(os.environ.get("PAUSE", "60"))

log = logging.getLogger("approver")


def waits(request):
    """Whether nobody has decided yet."""
    spec, phase = request["spec"], request.get("status", {}).get("phase")
    return phase == "Pending" and not (spec["approved"] or spec["denied"] or spec["cancelled"])


def ask(request):
    """The web service's answer; no answer is no decision."""
    metadata, spec = request["metadata"], request["spec"]
    question = {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "group": spec["instanceGroupRef"]["name"],
        "reason": spec["reason"],
        "from": spec.get("from"),
        "target": spec["target"],
        "message": request["status"].get("message"),
    }
    post = urllib.request.Request(
        ASK, json.dumps(question).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(post, timeout=DEADLINE) as answer:
            answer = json.load(answer)
            return answer.get("decision", "wait"), answer.get("reason", "")
    except (urllib.error.URLError, TimeoutError, ValueError, AttributeError) as error:
        log.warning("%s/%s: no answer: %s", question["namespace"], question["name"], error)
        return "wait", ""


def decide(requests, request, decision, reason):
    """Writes a decision, on the very state that was asked about."""
    namespace, name = request["metadata"]["namespace"], request["metadata"]["name"]
    field = {"approve": "approved", "deny": "denied"}[decision]
    body = {
        # Of the same object, and unchanged: else somebody wrote in between and the API server says 409.
        "metadata": {"uid": request["metadata"]["uid"], "resourceVersion": request["metadata"]["resourceVersion"]},
        "spec": {field: True, "decisionReason": reason},
    }
    try:
        requests.patch_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name, body)
        log.info("%s/%s: %s", namespace, name, field)
    except ApiException as error:
        words = json.loads(error.body)["message"] if error.body else error.reason
        if error.status == 409:
            log.info("%s/%s: somebody wrote in between; looked at again", namespace, name)
        elif error.status in (403, 422):
            # 403: the verb approve is missing, in the policy's words. 422: a decision that excludes this one stands.
            log.error("%s/%s: refused: %s", namespace, name, words)
        elif error.status != 404:
            raise


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    requests = client.CustomObjectsApi()
    while True:
        # Each round begins with everything that is there; what waited is asked about again.
        events = watch.Watch().stream(
            requests.list_cluster_custom_object, GROUP, VERSION, PLURAL, timeout_seconds=max(1, int(PAUSE))
        )
        try:
            for event in events:
                request = event["object"]
                if event["type"] != "DELETED" and waits(request):
                    decision, reason = ask(request)
                    if decision in ("approve", "deny"):
                        decide(requests, request, decision, reason)
        except ApiException as error:
            log.warning("watch: %s; begun anew", error.reason)
            time.sleep(1)


if __name__ == "__main__":
    main()
