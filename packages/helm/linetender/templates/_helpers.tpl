{{- define "linetender.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}-linetender
{{- end }}

{{- define "linetender.selector" -}}
app.kubernetes.io/name: linetender
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "linetender.labels" -}}
{{ include "linetender.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
