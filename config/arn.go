package config

import "strings"

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
