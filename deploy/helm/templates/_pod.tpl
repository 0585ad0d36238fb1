{{/* The pod of the replicator. */}}
{{- define "tailrace.pod" -}}
metadata:
  labels:
    {{- include "tailrace.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ print (include "tailrace.config" .) (toYaml .Values.mappings) .Values.gcp.credentialConfig | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "tailrace.serviceAccount" . }}
  terminationGracePeriodSeconds: {{ include "tailrace.gracePeriod" . }}
  {{- include "tailrace.podCommon" . | nindent 2 }}
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
    resources: {{ toYaml .Values.resources | nindent 6 }}
    volumeMounts:
    {{- include "tailrace.mounts" (dict "root" . "awsRoleArn" .Values.aws.roleArn "gcp" .Values.gcp.credentialConfig) | nindent 4 }}
    {{- if not (include "tailrace.external" .) }}
    - {name: data, mountPath: /data}
    {{- else }}
    - {name: scratch, mountPath: /scratch}
    {{- end }}
  volumes:
  {{- include "tailrace.volumes" (dict "root" . "suffix" "" "awsRoleArn" .Values.aws.roleArn "gcp" .Values.gcp.credentialConfig) | nindent 2 }}
  {{- if include "tailrace.external" . }}
  - name: scratch
    emptyDir: {sizeLimit: {{ .Values.scratch.size }}}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{ toYaml . | nindent 4 }}
  {{- end }}
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
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
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
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
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
