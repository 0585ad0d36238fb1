package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestLinesStandAboveTheBarAndItGoesAway(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out, "writing", 10)
	b.set(5, "half of it")
	b.set(12, "more than all of it") // writers may overrun the demo's time
	b.say("killed the replicator")
	b.close()
	if s := out.String(); !strings.Contains(s, "killed the replicator\n") {
		t.Errorf("%q", s)
	}
}
