package main

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestWaitBehindAFenceSaysThatItDoesNotEnd: the tables do not go on by themselves then.
func TestWaitBehindAFenceSaysThatItDoesNotEnd(t *testing.T) {
	fenced := status.Table{Source: "Orders", Fence: &status.Fence{ID: "f1", Reached: true}}
	for _, c := range []struct {
		status pipeline.Status
		want   string
	}{
		{pipeline.Status{Tables: []status.Table{{Source: "Other"}}}, "the tables go on by themselves"},
		{pipeline.Status{Tables: []status.Table{{Source: "Other"}, fenced}}, "table Orders is fenced for cutover f1"},
		{pipeline.Status{Tables: []status.Table{fenced}, Reasons: []string{"no owner"}}, "the reasons are"},
	} {
		if got := hintLate(c.status); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
