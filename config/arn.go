package config

import (
	"regexp"
	"strings"
)

// tableARN is the form of the ARN of a table: its region, and its name.
//
// Source:
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
var tableARN = regexp.MustCompile(`^arn:[a-z0-9-]+:dynamodb:([a-z0-9-]+):\d{12}:table/([A-Za-z0-9_.-]{3,255})$`)

// settleARN names a table whose source is an ARN by the name in it. Logs, rows and commands use the
// name, so a pipeline has one table of each.
func (t *Table) settleARN() {
	if m := tableARN.FindStringSubmatch(t.Source); m != nil {
		t.ARN, t.Source = t.Source, m[2]
	}
}

// arn checks the ARN of a table, and reports whether the source is one.
func (r *report) arn(path string, t *Table, c *Config) bool {
	switch {
	case t.ARN == "" && !strings.HasPrefix(t.Source, "arn:"):
		return false
	case t.ARN == "":
		r.fault("bad_value", path, "arn:aws:dynamodb:REGION:123456789012:table/NAME", "%q is not the ARN of a table",
			t.Source)
	default:
		region := tableARN.FindStringSubmatch(t.ARN)[1]
		if region != c.Source.Region && c.Source.Region != "" {
			r.fault("conflict", path, "a pipeline reads one region: give tables of another one a pipeline of their own",
				"the table is in %s, and source.region is %s", region, c.Source.Region)
		}
	}
	return true
}
