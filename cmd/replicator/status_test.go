package main

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestHintOfALateWait: without a reason the tables go on by themselves.
func TestHintOfALateWait(t *testing.T) {
	orders := []status.Table{{Source: "Orders"}}
	for _, c := range []struct {
		status pipeline.Status
		want   string
	}{
		{pipeline.Status{Tables: orders}, "the tables go on by themselves"},
		{pipeline.Status{Tables: orders, Reasons: []string{"no owner"}}, "the reasons are"},
	} {
		if got := hintLate(c.status); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
