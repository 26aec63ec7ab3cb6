{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the release's objects, with room for a suffix. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "sluice.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sluice.configNamespace" -}}
{{- default .Release.Namespace .Values.configNamespace -}}
{{- end -}}

{{- define "sluice.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The user that the operator is for the API server. */}}
{{- define "sluice.operatorUser" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "sluice.serviceAccountName" .) -}}
{{- end -}}

{{/* What --controllers says; the last entry that speaks of a controller holds. */}}
{{- define "sluice.controllers" -}}
{{- $list := .Values.controllers -}}
{{- if not .Values.autoApprover.enabled -}}
{{- $list = append (without $list "-auto-approver") "-auto-approver" -}}
{{- end -}}
{{- join "," $list -}}
{{- end -}}

{{/* "true" if the auto-approver runs: then, and only then, the operator may approve. */}}
{{- define "sluice.autoApproves" -}}
{{- $on := false -}}
{{- range splitList "," (include "sluice.controllers" .) -}}
{{- if has . (list "*" "auto-approver") -}}
{{- $on = true -}}
{{- else if eq . "-auto-approver" -}}
{{- $on = false -}}
{{- end -}}
{{- end -}}
{{- ternary "true" "" $on -}}
{{- end -}}

{{/* "true" if the API server is to write the name of who decides into the request. */}}
{{- define "sluice.stampsNames" -}}
{{- $mode := .Values.admissionPolicies.stampNames -}}
{{- $kind := "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- $can := and (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) (.Capabilities.APIVersions.Has $kind) -}}
{{- $wanted := or (eq $mode "always") (and (eq $mode "auto") $can) -}}
{{- ternary "true" "" (and .Values.admissionPolicies.enabled $wanted) -}}
{{- end -}}

{{- define "sluice.policy.requests" -}}
{{- include "sluice.fullname" . }}-requests
{{- end -}}

{{- define "sluice.policy.stamp" -}}
{{- include "sluice.fullname" . }}-stamp
{{- end -}}

{{/* Binds a ValidatingAdmissionPolicy under its own name. */}}
{{- define "sluice.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "sluice.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end -}}

{{/* CEL: labels under our prefix are the same in both of these maps. */}}
{{- define "sluice.cel.sameLabels" -}}
object.metadata.?labels.orValue({}).all(key, !key.startsWith('instancemgr.keikoproj.io/')
|| (key in oldObject.metadata.?labels.orValue({}) && oldObject.metadata.labels[key] == object.metadata.labels[key]))
&& oldObject.metadata.?labels.orValue({}).all(key, !key.startsWith('instancemgr.keikoproj.io/')
|| key in object.metadata.?labels.orValue({}))
{{- end -}}

{{/* CEL: whether the annotation on this object locks, as the operator reads it. */}}
{{- define "sluice.cel.locks" -}}
{{ . }}.metadata.?annotations[?'instancemgr.keikoproj.io/lock-upgrades'].orValue('false').lowerAscii() != 'false'
{{- end -}}

{{/* The words of a refusal for want of that verb. */}}
{{- define "sluice.lacksUnlock" -}}
lacks the verb unlock on instancegroups.instancemgr.keikoproj.io
{{- end -}}
