#!/usr/bin/env bash
# An approver in plain shell: approves requests for new images whose name matches a pattern. Needs kubectl only.
#
#   IMAGES='amazon-eks-node-al2023-*' ./approve.sh
#
# It can be stopped and started at any time: what it decides rests on the object alone, and approving twice is approving once.
set -uo pipefail
images=${IMAGES:-*}

decide() { # namespace name reason image-name
  case "$3" in ImageDrift) ;; *) echo "leaves $1/$2 to others: $3"; return ;; esac
  # shellcheck disable=SC2254 # the pattern is meant as one
  case "$4" in $images) ;; *) echo "leaves $1/$2 to others: image $4"; return ;; esac
  # The tests make the API server refuse if somebody decided meanwhile: the first decision stands.
  if answer=$(kubectl -n "$1" patch upgraderequest "$2" --type json -p '[
      {"op": "test", "path": "/spec/approved", "value": false},
      {"op": "test", "path": "/spec/denied", "value": false},
      {"op": "test", "path": "/spec/cancelled", "value": false},
      {"op": "replace", "path": "/spec/approved", "value": true}]' 2>&1); then
    echo "approved $1/$2: $4"
  else
    # Without the verb approve: Forbidden, with the words of the policy. After another decision: the test does not hold.
    echo "not approved $1/$2: $answer"
  fi
}

columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,REASON:.spec.reason,IMAGE:.spec.target.imageName
columns=$columns,PHASE:.status.phase,APPROVED:.spec.approved,DENIED:.spec.denied,CANCELLED:.spec.cancelled
# A watch ends now and then, with a server or by itself; the next one begins with everything that is there.
while true; do
  kubectl get upgraderequests --all-namespaces --watch --no-headers --output "custom-columns=$columns" |
    while read -r namespace name reason image phase approved denied cancelled; do
      if [ "$phase $approved $denied $cancelled" = "Pending false false false" ]; then
        decide "$namespace" "$name" "$reason" "$image"
      fi
    done
  sleep 1
done
