package main

import (
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// gapOf returns a gap as it is printed.
func gapOf(l *control.Log, g *checkpoint.Gap) render.Gap {
	line := render.GapOf(l.Table, l.State, g)
	line.Schema = schema
	return line
}

// findGap returns the gap with an id, and the log that records it; nil if there is none.
func findGap(logs []*control.Log, id string) (*control.Log, *checkpoint.Gap) {
	for _, l := range logs {
		if g := l.State.GapByID(id); g != nil {
			return l, g
		}
	}
	return nil, nil
}

// noGap returns the error of an id that no gap has.
func noGap(id string) error {
	return failure.Usagef("`replicator gaps list` shows them", "no gap %q", id)
}
