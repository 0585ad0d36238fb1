package chart

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesInValuesAreRefused: each line changes one value of a file that can be rendered, and
// is refused with a message that names it.
func TestMistakesInValuesAreRefused(t *testing.T) {
	const embedded, external, job = "minimal.yaml", "external.yaml", "schema-job.yaml"
	for _, c := range []struct{ values, set, want string }{
		{"", "", "config.pipeline is required"},
		{"", "config.pipeline=x", "needs at least one table"},
		{external, "piiSecrets.keys={new}", "piiSecrets.secret is required"},
		{external, "gcp.audience=", "gcp.audience is required"},
		{external, "config.archive.file=/x", "needs a volume"},
		{embedded, "config.queue.dir=/x", "config.queue.dir is set by the chart"},
		{embedded, "config.admin.listen=:1", "config.admin.listen is set by the chart"},
		{embedded, "config.pii_secrets={a},piiSecrets.secret=s,piiSecrets.keys={k}", "config.pii_secrets is set by"},

		// The volume: 20 + 1 for the log, 20 scratch, 2 spare.
		{embedded, "volume.size=42Gi", "volume.size is 42Gi and must be 43Gi or more: logs 1 * (20GiB + 1 GiB"},
		{embedded, "volume.size=46G", "must be 43Gi"},
		{embedded, "config.queue.max_bytes=28 GiB", "must be 51Gi"},
		{embedded, "config.queue.max_bytes=29000000000", "must be 51Gi"},
		{embedded, "config.queue.max_bytes=0.03 TiB", "must be 54Gi"},
		{embedded, "scratch.size=27.5Gi", "must be 51Gi"},
		{"many-tables.yaml", "volume.size=149Gi", "must be 150Gi or more: logs 8 * (10737418240 + 1 GiB"},
		{"many-tables.yaml", "volume.size=149Gi", "archive streams 2 * 20GiB, scratch.size 20Gi, 2 GiB spare"},
		{"selections.yaml", "volume.size=87Gi",
			"must be 88Gi or more: logs 7 * (5GiB + 1 GiB for dead letters), archive streams 6 * 4GiB"},
		{"selections.yaml", "volume.tables=0", "volume.tables is required"},
		{"archive-only.yaml", "volume.size=18Gi", "archive streams 1 * 10GiB"},

		{embedded, "terminationGracePeriodSeconds=25", "the pod would be killed before it has drained"},
		{"slow-drain.yaml", "terminationGracePeriodSeconds=91", "set more than 91 seconds"},
		{"environment.yaml", "terminationGracePeriodSeconds=null", "which the chart cannot read"},

		{embedded, "replicas=2", "the embedded log has one writer"},
		{embedded, "rehearsals[0].name=x,rehearsals[0].schedule=y,rehearsals[0].tables={Products}", "the embedded log can be reached"},
		{"rehearsals.yaml", "rehearsals[0].name=A_B", "/rehearsals/0/name"},
		{"rehearsals.yaml", "rehearsals[0].tabels={x}", "'tabels' not allowed"},
		{"archive-only.yaml", "schemaJob.enabled=true", "no table in config.tables has a target"},

		// The schema.
		{embedded, "replica=1", "'replica' not allowed"},
		{embedded, "image.tags=x", "'tags' not allowed"},
		{embedded, "config.pipelin=x", "'pipelin' not allowed"},
		{embedded, "config.tables[0].sorce=x", "'sorce' not allowed"},
		{embedded, "config.shutdown_timeout=25", "/config/shutdown_timeout"},
		{embedded, "replicas=-1", "/replicas"},
		{embedded, "volume.size=50GiB", "/volume/size"},
		{embedded, "image.pullPolicy=Sometimes", "/image/pullPolicy"},
		{embedded, "image.digest=sha256:12", "/image/digest"},
		{embedded, "metrics.port=80", "/metrics/port"},
		{embedded, "fullnameOverride=Shop", "/fullnameOverride"},
		{embedded, "metrics.serviceMonitor.enabled=maybe", "/metrics/serviceMonitor/enabled"},
		{embedded, "livenessProbe.httpGet.path=/x", "'httpGet' not allowed"},
		{embedded, "podSecurityContext.runAsUsers=1", "'runAsUsers' not allowed"},
		{embedded, "metrics.prometheusRule.alerts.TailraceGaps.threshold=1", "TailraceGaps"},
		{embedded, "metrics.prometheusRule.alerts.TailraceGap.thresholds=1", "'thresholds' not allowed"},
		{embedded, "metrics.prometheusRule.runbook=", "/metrics/prometheusRule/runbook"},
		{job, "schemaJob.backofLimit=1", "'backofLimit' not allowed"},
		{external, "networkPolicy.natsPorts={}", "/networkPolicy/natsPorts"},
	} {
		t.Run(c.values+" "+c.set, func(t *testing.T) {
			t.Parallel()
			var args []string
			if c.set != "" {
				args = []string{"--set", c.set}
			}
			if out, err := render(t, c.values, args...); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v, want %q in\n%s", err, c.want, out)
			}
		})
	}
}

// TestNotesSayWhatToDoNext: the notes are read once, by somebody who has just installed the chart.
// `helm template` does not print them; a dry run of an installation does.
func TestNotesSayWhatToDoNext(t *testing.T) {
	for values, want := range map[string][]string{
		"minimal.yaml": {"statefulset/shop-tailrace", "data-shop-tailrace-0", "schema --apply", "status --wait applied=now",
			"metrics.prometheusRule.enabled"},
		"external.yaml":   {"deploy/shop-tailrace", "3 replicas", "schema --apply"},
		"schema-job.yaml": {"The schema Job has made"},
		"stopped.yaml":    {"replicas is 0"},
		"alerts.yaml":     {"status --wait applied=now"},
	} {
		out, err := helm(t, "install", "shop", chartDir, "--dry-run=client", "--namespace", "data",
			"--values", filepath.Join(chartDir, "ci", values))
		if err != nil {
			t.Fatalf("%s: %v\n%s", values, err, out)
		}
		_, notes, ok := strings.Cut(out, "\nNOTES:\n")
		for _, w := range want {
			if !ok || !strings.Contains(notes, w) {
				t.Errorf("%s: no %q in the notes:\n%s", values, w, notes)
			}
		}
		if has := strings.Contains(notes, "schema --apply"); has && values == "schema-job.yaml" {
			t.Errorf("%s: asks for what the Job has done:\n%s", values, notes)
		}
		if has := strings.Contains(notes, "prometheusRule"); has && values == "alerts.yaml" {
			t.Errorf("%s: asks for alerts that are on:\n%s", values, notes)
		}
	}
}
