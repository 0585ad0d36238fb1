package main

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/cutover"
)

// TestRefusalSaysWhetherAFenceStands: who reads that nothing is written to Bigtable moves the application.
func TestRefusalSaysWhetherAFenceStands(t *testing.T) {
	for _, c := range []struct {
		refused cutover.Refused
		fence   string
		want    string
	}{
		{cutover.Refused{}, "", "no fence was raised"},
		{cutover.Refused{}, "f1", "fence f1 stands, and nothing is written to Bigtable"},
		{cutover.Refused{Undone: true}, "f1", "fence f1 was taken away, and the replicator may have written"},
	} {
		if got := hintRefused(&c.refused, c.fence); !strings.HasPrefix(got, c.want) {
			t.Errorf("undone: %t, fence %q: %q, want %q", c.refused.Undone, c.fence, got, c.want)
		}
	}
}
