{{/* The pod of the replicator. */}}
{{- define "tailrace.pod" -}}
{{- $checksum := printf "checksum/config: %s" (print (include "tailrace.config" .) (toYaml .Values.mappings) .Values.gcp.credentialConfig | sha256sum) }}
metadata:
  {{- include "tailrace.meta" (dict "root" . "base" (include "tailrace.labels" .) "labels" .Values.podLabels "annotations" .Values.podAnnotations "fixed" $checksum) | nindent 2 }}
spec:
  serviceAccountName: {{ include "tailrace.serviceAccount" . }}
  terminationGracePeriodSeconds: {{ include "tailrace.gracePeriod" . }}
  {{- include "tailrace.podCommon" . | nindent 2 }}
  {{- include "tailrace.place" . | nindent 2 }}
  containers:
  - name: replicator
    args: {{ concat (list "run" "--config=/etc/tailrace/tailrace.yaml") .Values.extraArgs | toJson }}
    {{- include "tailrace.container" (dict "root" . "awsRoleArn" .Values.aws.roleArn "gcp" .Values.gcp.credentialConfig) | nindent 4 }}
    ports:
    - {name: admin, containerPort: {{ .Values.metrics.port }}}
    startupProbe:
      httpGet: {path: /startupz, port: admin}
      {{- toYaml .Values.startupProbe | nindent 6 }}
    livenessProbe:
      httpGet: {path: /livez, port: admin}
      {{- toYaml .Values.livenessProbe | nindent 6 }}
    resources: {{ include "tailrace.resources" (dict "root" . "scratch" (include "tailrace.external" .)) | nindent 6 }}
    volumeMounts:
    {{- include "tailrace.mounts" (dict "root" . "awsRoleArn" .Values.aws.roleArn "gcp" .Values.gcp.credentialConfig) | nindent 4 }}
    {{- if not (include "tailrace.external" .) }}
    - {name: data, mountPath: /data}
    {{- else }}
    - {name: scratch, mountPath: /scratch}
    {{- end }}
  {{- with .Values.extraContainers }}{{ toYaml . | nindent 2 }}{{ end }}
  volumes:
  {{- include "tailrace.volumes" (dict "root" . "suffix" "" "awsRoleArn" .Values.aws.roleArn "gcp" .Values.gcp.credentialConfig) | nindent 2 }}
  {{- if include "tailrace.external" . }}
  - name: scratch
    emptyDir: {sizeLimit: {{ .Values.scratch.size }}}
  {{- end }}
{{- end }}

{{/* Where the replicas run: on different nodes and evenly over zones, unless the values choose. */}}
{{- define "tailrace.place" -}}
{{- $several := gt (int (include "tailrace.replicas" .)) 1 }}
{{- $selector := dict "matchLabels" (fromYaml (include "tailrace.selector" .)) }}
{{- $affinity := deepCopy .Values.affinity }}
{{- if and $several (not (hasKey $affinity "podAntiAffinity")) }}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" $selector }}
{{- $preferred := list (dict "weight" 100 "podAffinityTerm" $term) }}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" $preferred) }}
{{- end }}
{{- with $affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- $spread := .Values.topologySpreadConstraints }}
{{- if and $several (kindIs "invalid" $spread) }}
{{- $spread = list (dict "maxSkew" 1 "topologyKey" "topology.kubernetes.io/zone" "whenUnsatisfiable" "ScheduleAnyway" "labelSelector" $selector "matchLabelKeys" (list "pod-template-hash")) }}
{{- end }}
{{- with $spread }}
topologySpreadConstraints: {{ toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The resources of a container, with the room that its emptyDirs may take. Takes root and scratch, whether it has one. */}}
{{- define "tailrace.resources" -}}
{{- $resources := deepCopy .root.Values.resources }}
{{- $requests := default dict $resources.requests }}
{{- if not (hasKey $requests "ephemeral-storage") }}
{{- $bytes := include "tailrace.bytes" .root.Values.tmp.size | int64 }}
{{- if .scratch }}{{ $bytes = add $bytes (include "tailrace.bytes" .root.Values.scratch.size | int64) }}{{ end }}
{{- $_ := set $requests "ephemeral-storage" (printf "%dMi" (div (add $bytes 1048575) 1048576)) }}
{{- end }}
{{- $_ := set $resources "requests" $requests }}
{{- toYaml $resources }}
{{- end }}

{{/* What the pods of the replicator and of the schema Job have in common. Kubernetes' restricted profile admits both. */}}
{{- define "tailrace.podCommon" -}}
automountServiceAccountToken: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.initContainers }}
initContainers: {{ toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Image, environment and rights of a container. Takes root, awsRoleArn and gcp: the credentials differ. */}}
{{- define "tailrace.container" -}}
{{- with .root.Values.image }}
image: {{ if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (default $.root.Chart.AppVersion .tag) }}{{ end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
env:
{{- if .awsRoleArn }}
- {name: AWS_ROLE_ARN, value: {{ .awsRoleArn | quote }}}
- {name: AWS_WEB_IDENTITY_TOKEN_FILE, value: /var/run/tailrace/aws/token}
- {name: AWS_ROLE_SESSION_NAME, value: {{ include "tailrace.fullname" .root }}}
{{- end }}
{{- if .gcp }}
- {name: GOOGLE_APPLICATION_CREDENTIALS, value: /var/run/tailrace/gcp-config/credentials.json}
{{- end }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $i, $key := .root.Values.piiSecrets.keys }}
- name: TAILRACE_PII_{{ add1 $i }}
  valueFrom: {secretKeyRef: {name: {{ required "piiSecrets.secret is required with piiSecrets.keys" $.root.Values.piiSecrets.secret }}, key: {{ $key | quote }}}}
{{- end }}
{{- with .root.Values.env }}{{ toYaml . | nindent 0 }}{{ end }}
{{- with .root.Values.envFrom }}
envFrom: {{ toYaml . | nindent 0 }}
{{- end }}
{{- with .root.Values.securityContext }}
securityContext: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Mounts of the volumes of tailrace.volumes. */}}
{{- define "tailrace.mounts" -}}
- {name: config, mountPath: /etc/tailrace, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .awsRoleArn }}
- {name: aws-token, mountPath: /var/run/tailrace/aws, readOnly: true}
{{- end }}
{{- if .gcp }}
- {name: gcp-token, mountPath: /var/run/tailrace/gcp, readOnly: true}
- {name: gcp-config, mountPath: /var/run/tailrace/gcp-config, readOnly: true}
{{- end }}
{{- with .root.Values.extraVolumeMounts }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end }}

{{/* Volumes for configuration, credentials and temporary files. The ConfigMaps have names with this suffix. */}}
{{- define "tailrace.volumes" -}}
{{- $name := printf "%s%s" (include "tailrace.fullname" .root) .suffix }}
- name: config
  projected:
    sources:
    - configMap: {name: {{ $name }}, items: [{key: tailrace.yaml, path: tailrace.yaml}]}
    {{- if .root.Values.mappings }}
    - configMap:
        name: {{ $name }}-mappings
        items:
        {{- range $file, $text := .root.Values.mappings }}
        - {key: {{ $file }}, path: mappings/{{ $file }}}
        {{- end }}
    {{- end }}
- name: tmp
  emptyDir: {sizeLimit: {{ .root.Values.tmp.size }}}
{{- if .awsRoleArn }}
- name: aws-token
  projected: {sources: [{serviceAccountToken: {path: token, audience: {{ .root.Values.aws.audience | quote }}, expirationSeconds: 3600}}]}
{{- end }}
{{- if .gcp }}
- name: gcp-token
  projected: {sources: [{serviceAccountToken: {path: token, audience: {{ required "gcp.audience is required with gcp.credentialConfig" .root.Values.gcp.audience | quote }}, expirationSeconds: 3600}}]}
- name: gcp-config
  configMap: {name: {{ $name }}, items: [{key: credentials.json, path: credentials.json}]}
{{- end }}
{{- with .root.Values.extraVolumes }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end }}
