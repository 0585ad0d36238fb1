package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
)

// TestBackfillThatCannotWorkIsRefused: each with its place, what is wrong, and what to write
// instead.
func TestBackfillThatCannotWorkIsRefused(t *testing.T) {
	budget := func(text string) string {
		return `tables[0].backfill.read_units: "` + text + `" is not a read budget: ` +
			"write read capacity units per second, as in 2000, or a share of the provisioned ones, as in 25%"
	}
	for written, want := range map[string]string{
		"scan":                                "",
		"none":                                "",
		"{read_units: 2000}":                  "",
		"{from: scan, read_units: 25%}":       "",
		"{from: none, write_rows: 5000/s}":    "",
		"{from: export, url: s3://b/x/01-ab}": "",
		"{from: export, url: file:///x}":      "",
		"{from: export, url: ./x}":            "",
		"{from: export, bucket: exports}":     "",
		"copy": `tables[0].backfill: "copy" is not a backfill: ` +
			"write scan, export or none, or a block such as {from: scan, read_units: 25%}",
		"[scan]":                         "tables[0].backfill: a list does not fit: expected one text or number",
		"{from: copy}":                   `tables[0].backfill.from: "copy" is not a possible value`,
		"{form: scan}":                   `tables[0].backfill.form: unknown key "form"`,
		"{from: scan, read_units: 0}":    budget("0"),
		"{from: scan, read_units: 101%}": budget("101%"),
		"{from: scan, write_rows: 5000}": `tables[0].backfill.write_rows: "5000" is not a rate: ` +
			"write a number per second, as in 5000/s",
		"{from: scan, segments: -1}":   "tables[0].backfill.segments: a scan has 1 to 4096 segments, not -1",
		"{from: scan, segments: 4097}": "tables[0].backfill.segments: a scan has 1 to 4096 segments, not 4097",
		"{from: scan, by: workers}": "tables[0].backfill.by: workers copy the files of an export, " +
			`and from is "scan"`,
		"{from: export, by: me, url: s3://b/x}": "tables[0].backfill.by: \"me\" is not a possible value",
		"{from: scan, bucket: exports}":         "tables[0].backfill: url, bucket and prefix are for from: export only",
		"{url: s3://b/x}":                       "tables[0].backfill: url, bucket and prefix are for from: export only",
		"export":                                "tables[0].backfill: an export needs a place",
		"{from: export, prefix: x}":             "tables[0].backfill: an export needs a place",
		"{from: export, url: /x, bucket: abc}": "tables[0].backfill: url and bucket exclude each other: " +
			"an export exists already, or the first start asks for one",
		"{from: export, url: /x, prefix: abc}": "tables[0].backfill.prefix: prefix is for bucket only",
		"{from: export, url: gs:///x}":         `tables[0].backfill.url: "gs:///x" is not the place of an export`,
		"{from: export, url: https://b/x}":     `tables[0].backfill.url: "https://b/x" is not the place of an export`,
		"{from: export, url: file://x/y}":      `tables[0].backfill.url: "file://x/y" is not the place of an export`,
		"{from: export, bucket: s3://exports/x}": `tables[0].backfill.bucket: "s3://exports/x" ` +
			"is not the name of an S3 bucket",
	} {
		text := strings.Replace(smallest, "target: products", "target: products, backfill: "+written, 1)
		_, problems := parse(t, text)
		got := ""
		for _, p := range problems {
			if p.Hint == "" || p.Code == "" {
				t.Errorf("%s: %s: no hint or no code", written, p)
			}
			got += p.String()
		}
		if want != "" {
			want = "error: line 7: " + want
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", written, d)
		}
	}
}

// TestStartThatLosesChangesBesideABackfillIsRefused: what was written between the copy of an item
// and the first record that is read would never arrive.
func TestStartThatLosesChangesBesideABackfillIsRefused(t *testing.T) {
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		backfill, start string
		refused         bool
	}{
		{"scan", `""`, false}, {"scan", "trim_horizon", false}, {"scan", "latest", true},
		{"scan", ago(time.Minute), true}, {"scan", ago(time.Hour), false},
		{"{from: export, bucket: exports}", ago(time.Minute), true},
		{"{from: export, bucket: exports}", ago(time.Hour), false},
		{"{from: export, url: /x}", ago(time.Hour), true}, {"{from: export, url: /x}", ago(30 * time.Hour), false},
		{"none", "latest", false}, {`""`, "latest", false},
	} {
		text := strings.Replace(smallest, "region: eu-west-1", "region: eu-west-1, start: "+c.start, 1)
		if c.backfill != `""` {
			text = strings.Replace(text, "target: products", "target: products, backfill: "+c.backfill, 1)
		}
		_, problems := parse(t, text)
		if problem.AnyError(problems) != c.refused || c.refused && problems[0].Path != "source.start" {
			t.Errorf("%s from %s: %v, want refused %v", c.backfill, c.start, problems, c.refused)
		}
	}
}

func TestSecretsThatSealKeysAreCheckedAndNotRepeated(t *testing.T) {
	const good, other = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk="
	t.Setenv("TR_PII", good)
	for written, want := range map[string]string{
		`"${TR_PII}"`:                  "",
		good:                           "warning: pii_secrets[0]: a secret is written in the file",
		`"${TR_PII}", "${TR_PII}"`:     "error: pii_secrets[1]: it is the same secret as pii_secrets[0]",
		`"${TR_PII}", c2VjcmV0`:        "error: pii_secrets[1]: a secret is the base64 of 32 bytes",
		`"${TR_PII}", "not base64"`:    "error: pii_secrets[1]: a secret is the base64 of 32 bytes",
		`"${TR_PII}", "` + other + `"`: "warning: pii_secrets[1]: a secret is written in the file",
	} {
		_, problems := parse(t, smallest+"pii_secrets: ["+written+"]\n")
		got := ""
		for _, p := range problems {
			got += strings.Replace(p.String(), "line 8: ", "", 1)
			if strings.Contains(p.String()+p.Hint, good) || strings.Contains(p.String()+p.Hint, other) {
				t.Errorf("%s: a secret was repeated: %s", written, p)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
}

// TestScratchHasAPlaceWithEitherLog: a cluster's log leaves no directory to put the runs into.
func TestScratchHasAPlaceWithEitherLog(t *testing.T) {
	t.Setenv("TMPDIR", "/mnt/tmp")
	for queue, want := range map[string]string{"dir: ./data": "/etc/tailrace/data", `url: "nats://a:4222"`: "/mnt/tmp"} {
		cfg, problems := parse(t, strings.Replace(smallest, "dir: ./tailrace-data", queue, 1))
		if cfg.Scratch != want || len(problems) > 0 {
			t.Errorf("%s: %q, want %q: %v", queue, cfg.Scratch, want, problems)
		}
	}
}
