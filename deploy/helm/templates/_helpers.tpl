{{- define "tailrace.name" -}}
{{- if contains "tailrace" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-tailrace" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tailrace.selector" -}}
app.kubernetes.io/name: tailrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tailrace.labels" -}}
{{ include "tailrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tailrace.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "tailrace.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{/* "yes" when the log is in a NATS cluster outside. */}}
{{- define "tailrace.external" -}}
{{- if (.Values.config.queue).url }}yes{{ end }}
{{- end }}

{{/* The configuration: the user's, with what only the chart can know. */}}
{{- define "tailrace.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $_ := required "config.pipeline is required" $config.pipeline }}
{{- if not $config.tables }}{{ fail "config.tables needs at least one table" }}{{ end }}
{{- if not (include "tailrace.external" .) }}
{{- $_ := set $config "queue" (merge (dict "dir" "/data/log") (default dict $config.queue)) }}
{{- else if or ($config.archive).file (hasPrefix "file:" (toString ($config.archive).url)) }}{{ fail "config.archive.file needs a volume: with config.queue.url use config.archive.subject, or mount one with extraVolumes and set archive.file in it by another values file" }}
{{- end }}
{{- if include "tailrace.external" . }}
{{- $config = merge $config (dict "scratch" "/scratch") }}
{{- else }}
{{- $config = merge $config (dict "scratch" "/data/scratch") }}
{{- end }}
{{- if .Values.piiSecrets.keys }}
{{- $names := list }}
{{- range $i, $_ := .Values.piiSecrets.keys }}{{ $names = append $names (printf "${TAILRACE_PII_%d}" (add1 $i)) }}{{ end }}
{{- $_ := set $config "pii_secrets" $names }}
{{- end }}
{{- $_ := set $config "admin" (merge (dict "listen" (printf "0.0.0.0:%d" (int .Values.metrics.port))) (default dict $config.admin)) }}
{{- toYaml $config }}
{{- end }}

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
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
  - name: replicator
    image: {{ if .Values.image.digest }}{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}{{ else }}{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}{{ end }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: {{ concat (list "run" "--config=/etc/tailrace/tailrace.yaml") .Values.extraArgs | toJson }}
    env:
    {{- if .Values.aws.roleArn }}
    - {name: AWS_ROLE_ARN, value: {{ .Values.aws.roleArn | quote }}}
    - {name: AWS_WEB_IDENTITY_TOKEN_FILE, value: /var/run/tailrace/aws/token}
    - {name: AWS_ROLE_SESSION_NAME, value: {{ include "tailrace.name" . }}}
    {{- end }}
    {{- if .Values.gcp.credentialConfig }}
    - {name: GOOGLE_APPLICATION_CREDENTIALS, value: /var/run/tailrace/gcp-config/credentials.json}
    {{- end }}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    {{- range $i, $key := .Values.piiSecrets.keys }}
    - name: TAILRACE_PII_{{ add1 $i }}
      valueFrom: {secretKeyRef: {name: {{ required "piiSecrets.secret is required with piiSecrets.keys" $.Values.piiSecrets.secret }}, key: {{ $key | quote }}}}
    {{- end }}
    {{- with .Values.env }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- with .Values.envFrom }}
    envFrom: {{ toYaml . | nindent 4 }}
    {{- end }}
    ports:
    - {name: admin, containerPort: {{ .Values.metrics.port }}}
    startupProbe:
      httpGet: {path: /startupz, port: admin}
      {{- toYaml .Values.startupProbe | nindent 6 }}
    livenessProbe:
      httpGet: {path: /livez, port: admin}
      {{- toYaml .Values.livenessProbe | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    resources: {{ toYaml .Values.resources | nindent 6 }}
    volumeMounts:
    - {name: config, mountPath: /etc/tailrace, readOnly: true}
    {{- if not (include "tailrace.external" .) }}
    - {name: data, mountPath: /data}
    {{- else }}
    - {name: scratch, mountPath: /scratch}
    {{- end }}
    {{- if .Values.aws.roleArn }}
    - {name: aws-token, mountPath: /var/run/tailrace/aws, readOnly: true}
    {{- end }}
    {{- if .Values.gcp.credentialConfig }}
    - {name: gcp-token, mountPath: /var/run/tailrace/gcp, readOnly: true}
    - {name: gcp-config, mountPath: /var/run/tailrace/gcp-config, readOnly: true}
    {{- end }}
    {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
  volumes:
  - name: config
    projected:
      sources:
      - configMap: {name: {{ include "tailrace.name" . }}, items: [{key: tailrace.yaml, path: tailrace.yaml}]}
      {{- if .Values.mappings }}
      - configMap:
          name: {{ include "tailrace.name" . }}-mappings
          items:
          {{- range $file, $text := .Values.mappings }}
          - {key: {{ $file }}, path: mappings/{{ $file }}}
          {{- end }}
      {{- end }}
  {{- if include "tailrace.external" . }}
  - name: scratch
    emptyDir: {sizeLimit: {{ .Values.scratch.size }}}
  {{- end }}
  {{- if .Values.aws.roleArn }}
  - name: aws-token
    projected: {sources: [{serviceAccountToken: {path: token, audience: {{ .Values.aws.audience | quote }}, expirationSeconds: 3600}}]}
  {{- end }}
  {{- if .Values.gcp.credentialConfig }}
  - name: gcp-token
    projected: {sources: [{serviceAccountToken: {path: token, audience: {{ required "gcp.audience is required with gcp.credentialConfig" .Values.gcp.audience | quote }}, expirationSeconds: 3600}}]}
  - name: gcp-config
    configMap: {name: {{ include "tailrace.name" . }}, items: [{key: credentials.json, path: credentials.json}]}
  {{- end }}
  {{- with .Values.extraVolumes }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
