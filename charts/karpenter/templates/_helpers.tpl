{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "karpenter.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "karpenter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a node class is called with the provider, and its group. */}}
{{- define "karpenter.classes" -}}
{{- get (dict "aws" "ec2nodeclasses" "azure" "aksnodeclasses" "kwok" "kwoknodeclasses") .Values.settings.cloudProvider }}
{{- end }}

{{- define "karpenter.classGroup" -}}
{{- get (dict "aws" "karpenter.k8s.aws" "azure" "karpenter.azure.com" "kwok" "karpenter.kwok.sh") .Values.settings.cloudProvider }}
{{- end }}

{{/* The metadata that every object has beside its name. */}}
{{- define "karpenter.metadata" -}}
labels:
  {{- include "karpenter.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter.image" -}}
{{- with .Values.controller.image }}
{{- .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{/* A setting from values: its variable, if it says anything. */}}
{{- define "karpenter.env" -}}
{{- if .value }}
- name: {{ .name }}
  value: {{ tpl (toString .value) .root | quote }}
{{- end }}
{{- end }}

{{/* How metrics are scraped, for a ServiceMonitor; its endpointConfig stands over it. */}}
{{- define "karpenter.scrape" -}}
{{- if .Values.controller.metrics.secure }}
{{- $said := default dict .Values.serviceMonitor.endpointConfig }}
scheme: https
{{- if not (or $said.authorization $said.bearerTokenSecret) }}
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- end }}
{{- if not (or .Values.controller.metrics.certDir $said.tlsConfig) }}
tlsConfig:
  insecureSkipVerify: true
{{- end }}
{{- end }}
{{- end }}

{{/* true if Karpenter makes virtual machines of an AKS cluster itself. */}}
{{- define "karpenter.vmMode" -}}
{{- $mode := (.Values.settings.azure | default dict).provisionMode -}}
{{- range .Values.controller.env | default list -}}
{{- if eq .name "PROVISION_MODE" }}{{ $mode = .value }}{{ end -}}
{{- end -}}
{{- if and (eq .Values.settings.cloudProvider "azure") (eq ($mode | default "aksscriptless" | toString) "aksscriptless") }}true{{ end -}}
{{- end }}

{{/* The names of the Secrets of bootstrap tokens, as JSON: of Karpenter's own, or of the one that it is given. */}}
{{- define "karpenter.tokenSecrets" -}}
{{- $names := list "bootstrap-token-karpn0" "bootstrap-token-karpn1" "bootstrap-token-karpn2" -}}
{{- range .Values.controller.env | default list -}}
{{- if and (eq .name "KUBELET_BOOTSTRAP_TOKEN") (or .value .valueFrom) -}}
{{- $names = list -}}
{{- with .value }}{{ $names = list (printf "bootstrap-token-%s" (first (splitList "." .))) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}
