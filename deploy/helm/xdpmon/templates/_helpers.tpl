{{- define "xdpmon.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "xdpmon.tag" -}}{{ .Values.image.tag | default .Chart.AppVersion }}{{- end -}}

{{- define "xdpmon.labels" -}}
app.kubernetes.io/name: xdpmon
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "xdpmon.selector" -}}
app.kubernetes.io/name: xdpmon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The agent's file: keys that the chart sets, then those of agent.extra. */}}
{{- define "xdpmon.agent" -}}
{{- $a := .Values.agent -}}
{{- $file := dict "listen" (printf "%s:%v" $a.listen $a.port) "log" (dict "format" "json") "outputs" (list (dict "json" "-")) "limits" $a.limits "names" $a.names -}}
{{- $_ := set $file "store" (merge (dict "path" "/var/lib/xdpmon/windows.db") $a.store) -}}
{{- $instances := $a.instances -}}
{{- if .Values.coordinator.enabled -}}
{{- $server := printf "tls://%s-coordinator.%s.svc:4222" (include "xdpmon.name" .) .Release.Namespace -}}
{{- $_ := set $file "bus" (dict "servers" (list $server) "plan" "/var/lib/xdpmon/plan" "keys" (dict "ca" "/etc/xdpmon/keys/ca.crt" "certificate" "/etc/xdpmon/keys/agent.crt" "key" "/etc/xdpmon/keys/agent.key")) -}}
{{- end -}}
{{- $_ := set $file "instances" $instances -}}
{{- toYaml (merge $file $a.extra) -}}
{{- end -}}

{{- define "xdpmon.coordinator" -}}
{{- $c := .Values.coordinator -}}
{{- $keys := dict "ca" "/etc/xdpmon-coordinator/keys/ca.crt" "certificate" "/etc/xdpmon-coordinator/keys/tls.crt" "key" "/etc/xdpmon-coordinator/keys/tls.key" "revoked" "/etc/xdpmon-coordinator/keys/revoked.crl" -}}
{{- $file := dict "listen" (printf "%s:%v" $c.listen $c.port) "log" (dict "format" "json") "outputs" (list (dict "json" "-")) "limits" $c.limits "measurements" $c.measurements -}}
{{- $_ := set $file "store" (merge (dict "path" "/var/lib/xdpmon-coordinator/windows.db") $c.store) -}}
{{- $_ := set $file "bus" (dict "listen" "0.0.0.0:4222" "keys" $keys) -}}
{{- toYaml (merge $file $c.extra) -}}
{{- end -}}

{{/* Where the kubelet asks for health: it is on the node, as the agent is. */}}
{{- define "xdpmon.probe" -}}
{{- if has . (list "0.0.0.0" "[::]" "") }}127.0.0.1{{ else }}{{ . }}{{ end -}}
{{- end -}}
