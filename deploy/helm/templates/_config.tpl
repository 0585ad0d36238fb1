{{/* The configuration: the user's, with what only the chart can know. */}}
{{- define "tailrace.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $_ := required "config.pipeline is required" $config.pipeline }}
{{- if not $config.tables }}{{ fail "config.tables needs at least one table" }}{{ end }}
{{- if ($config.queue).dir }}{{ fail "config.queue.dir is set by the chart: leave it out" }}{{ end }}
{{- if ($config.admin).listen }}{{ fail "config.admin.listen is set by the chart: the port is metrics.port" }}{{ end }}
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
{{- if $config.pii_secrets }}{{ fail "config.pii_secrets is set by the chart from piiSecrets: leave one of the two out" }}{{ end }}
{{- $names := list }}
{{- range $i, $_ := .Values.piiSecrets.keys }}{{ $names = append $names (printf "${TAILRACE_PII_%d}" (add1 $i)) }}{{ end }}
{{- $_ := set $config "pii_secrets" $names }}
{{- end }}
{{- $hosts := concat (list (printf "%s.%s" (include "tailrace.fullname" .) .Release.Namespace)) (default list ($config.admin).hosts) }}
{{- $_ := set $config "admin" (dict "listen" (printf ":%d" (int .Values.metrics.port)) "hosts" $hosts) }}
{{- toYaml $config }}
{{- end }}

{{/*
The bytes of a size: of Kubernetes (50Gi, 50G) or of the configuration (20GiB, 1.5 GiB, 1048576). Nothing for a text that
is none, such as a ${NAME} that only the process can read.
*/}}
{{- define "tailrace.bytes" -}}
{{- $text := include "tailrace.shown" . }}
{{- if regexMatch "^[0-9]+([.][0-9]+)? ?([kKMGTPE]i?)?B?$" $text }}
{{- $powers := dict "" 1.0 "k" 1e3 "K" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 }}
{{- $binary := dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 }}
{{- $unit := regexFind "[kKMGTPE]i?" $text }}
{{- printf "%.0f" (mulf (float64 (regexFind "^[0-9.]+" $text)) (get (merge $powers $binary) $unit)) }}
{{- end }}
{{- end }}

{{/* A size as it was written: helm reads numbers as floats. */}}
{{- define "tailrace.shown" -}}
{{- if kindIs "float64" . }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* The seconds of a duration such as 25s or 1m30s. Nothing for a ${NAME}. */}}
{{- define "tailrace.seconds" -}}
{{- if regexMatch "^([0-9.]+(ns|us|µs|ms|s|m|h))+$" . }}
{{- $seconds := 0.0 }}
{{- $units := dict "ns" 1e-9 "us" 1e-6 "µs" 1e-6 "ms" 1e-3 "s" 1.0 "m" 60.0 "h" 3600.0 }}
{{- range regexFindAll "[0-9.]+(ns|us|µs|ms|s|m|h)" . -1 }}
{{- $seconds = addf $seconds (mulf (float64 (regexFind "^[0-9.]+" .)) (get $units (regexFind "[a-zµ]+$" .))) }}
{{- end }}
{{- ceil $seconds | int }}
{{- end }}
{{- end }}

{{/* What SIGTERM may take, and then some: a pod that is killed before it has drained repeats writes. */}}
{{- define "tailrace.gracePeriod" -}}
{{- $timeout := default "25s" .Values.config.shutdown_timeout }}
{{- $drain := include "tailrace.seconds" $timeout }}
{{- $given := .Values.terminationGracePeriodSeconds }}
{{- if kindIs "invalid" $given }}
{{- if not $drain }}{{ fail (printf "config.shutdown_timeout is %s, which the chart cannot read: set terminationGracePeriodSeconds to more than it" $timeout) }}{{ end }}
{{- add (int $drain) 15 }}
{{- else if and $drain (le (int $given) (int $drain)) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, config.shutdown_timeout %s: the pod would be killed before it has drained; set more than %d seconds, or leave it out" (int $given) $timeout (int $drain)) }}
{{- else }}
{{- int $given }}
{{- end }}
{{- end }}

{{/* The replicas of the workload. */}}
{{- define "tailrace.replicas" -}}
{{- $given := .Values.replicas }}
{{- if include "tailrace.external" . }}
{{- if kindIs "invalid" $given }}2{{ else }}{{ int $given }}{{ end }}
{{- else if kindIs "invalid" $given }}1
{{- else if gt (int $given) 1 }}
{{- fail (printf "replicas is %d, but the embedded log has one writer: leave replicas out, or set config.queue.url for a NATS cluster" (int $given)) }}
{{- else }}{{ int $given }}{{ end }}
{{- end }}

{{/*
The size of the volume, if all fits on it that may grow up to a limit. A limit that is only known to the process (${NAME})
is not counted.
*/}}
{{- define "tailrace.volumeSize" -}}
{{- $config := .Values.config }}
{{- $logs := 0 }}
{{- $archives := 0 }}
{{- $selections := false }}
{{- $archivedSelections := false }}
{{- $archiving := or ($config.archive).url ($config.archive).file ($config.archive).subject }}
{{- range $config.tables }}
{{- $archived := and $archiving (or (eq (toString .on_ttl_expiry) "archive") (and (hasKey . "archive") (not .on_ttl_expiry))) }}
{{- if or .tag (regexMatch "[*?]" (toString .source)) }}
{{- $selections = true }}
{{- if $archived }}{{ $archivedSelections = true }}{{ end }}
{{- else }}
{{- $logs = add1 $logs }}
{{- if $archived }}{{ $archives = add1 $archives }}{{ end }}
{{- end }}
{{- end }}
{{- if $selections }}
{{- if not .Values.volume.tables }}{{ fail "volume.tables is required: config.tables has a selection, and volume.size depends on how many tables it may find" }}{{ end }}
{{- $logs = add $logs .Values.volume.tables }}
{{- if $archivedSelections }}{{ $archives = add $archives .Values.volume.tables }}{{ end }}
{{- end }}
{{- $max := default "20GiB" ($config.queue).max_bytes }}
{{- $archive := default "20GiB" ($config.archive).max_bytes }}
{{- $gib := 1073741824 }}
{{- $need := add (mul $logs (add (include "tailrace.bytes" $max) $gib)) (mul $archives (include "tailrace.bytes" $archive)) (include "tailrace.bytes" .Values.scratch.size) (mul 2 $gib) }}
{{- if lt (int64 (include "tailrace.bytes" .Values.volume.size)) (int64 $need) }}
{{- fail (printf "volume.size is %v and must be %dGi or more: logs %d * (%s + 1 GiB for dead letters), archive streams %d * %s, scratch.size %v, 2 GiB spare; raise it, or lower config.queue.max_bytes" .Values.volume.size (div (add $need (sub $gib 1)) $gib) $logs (include "tailrace.shown" $max) $archives (include "tailrace.shown" $archive) .Values.scratch.size) }}
{{- end }}
{{- .Values.volume.size }}
{{- end }}
