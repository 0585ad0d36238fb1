{{/* The chart's name, and the value of the label app.kubernetes.io/name. */}}
{{- define "tailrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* The name of every object. 52 characters: a StatefulSet adds a revision to it in labels, which hold 63. */}}
{{- define "tailrace.fullname" -}}
{{- $name := include "tailrace.name" . }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tailrace.selector" -}}
app.kubernetes.io/name: {{ include "tailrace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/*
Labels and annotations of an object. Takes root, base (labels that no value replaces), labels and annotations (the values
for this object), and fixed (annotations that no value replaces).
*/}}
{{- define "tailrace.meta" -}}
{{- $labels := mergeOverwrite (dict) .root.Values.commonLabels (default dict .labels) (fromYaml .base) }}
labels: {{ toYaml $labels | nindent 2 }}
{{- with mergeOverwrite (dict) .root.Values.commonAnnotations (default dict .annotations) (fromYaml (default "" .fixed)) }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Labels of everything that is not the schema Job's. */}}
{{- define "tailrace.labels" -}}
{{ include "tailrace.selector" . }}
{{ include "tailrace.commonLabels" . }}
{{- end }}

{{- define "tailrace.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tailrace.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "tailrace.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{/* "yes" when the log is in a NATS cluster outside. */}}
{{- define "tailrace.external" -}}
{{- if (.Values.config.queue).url }}yes{{ end }}
{{- end }}

{{/* The ConfigMaps of configuration and mappings, for tailrace.volumes. Takes root, suffix, gcp, base and fixed. */}}
{{- define "tailrace.configMaps" -}}
{{- $name := printf "%s%s" (include "tailrace.fullname" .root) .suffix }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  {{- include "tailrace.meta" . | nindent 2 }}
data:
  tailrace.yaml: |
    {{- include "tailrace.config" .root | nindent 4 }}
  {{- with .gcp }}
  credentials.json: {{ . | quote }}
  {{- end }}
{{- if .root.Values.mappings }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}-mappings
  {{- include "tailrace.meta" . | nindent 2 }}
data: {{ toYaml .root.Values.mappings | nindent 2 }}
{{- end }}
{{- end }}
