package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// TestTableThatIsNotComparedIsNamed: what was compared and differs is worse than what was not
// compared, and that is worse than what is equal.
func TestTableThatIsNotComparedIsNamed(t *testing.T) {
	user := []uncompared{{Table: "User", Error: "describe table User: ResourceNotFoundException", Hint: "check the name"}}
	for _, c := range []struct {
		verdict report.Verdict
		left    []uncompared
		want    failure.Class
	}{
		{report.Equal, nil, failure.None},
		{report.Equal, user, failure.Unready},
		{report.Different, nil, failure.Different},
		{report.Different, user, failure.Different},
		{report.Unproven, user, failure.Different},
	} {
		var out, errs bytes.Buffer
		err := printVerified(&cli.App{Out: &out, Errs: &errs},
			&verified{Tables: []report.Table{{Source: "Log", Verdict: c.verdict}}, NotCompared: c.left}, "")
		class, _ := failure.Of(err)
		named := strings.Contains(errs.String(), "User is not compared: describe table User")
		if class != c.want || named != (c.left != nil) {
			t.Errorf("%s, %d left out: %v, want %v; %s", c.verdict, len(c.left), class, c.want, &errs)
		}
	}
}
