package pipeline

import (
	"context"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Past is what happened to the tables, and how they were in the last hour.
type Past struct {
	Hours  map[string][]latency.Point // by table
	Events []status.Happening         // the newest first
}

// Past returns the past of a table with at most so many events; of every table for "".
func (p *Pipeline) Past(source string, events int) Past {
	past := Past{Hours: map[string][]latency.Point{}}
	var lists [][]status.Happening
	for _, t := range p.all() {
		if source != "" && source != t.Source {
			continue
		}
		past.Hours[t.Source] = t.view.history.Hour()
		now := t.view.latest()
		for _, seen := range []*status.Observed{now.seen, now.stored} {
			if seen != nil {
				lists = append(lists, seen.Happenings())
				break
			}
		}
	}
	past.Events = status.Newest(events, lists...)
	return past
}

// Detail returns the content of a table's page beside its status: the shards and gaps as the owner
// last found them, nil where this process does not own the table, and the points of the last hour.
// It is false for an unknown table.
func (p *Pipeline) Detail(ctx context.Context, source string) (d *status.Detail, hour []latency.Point, ok bool) {
	for _, t := range p.all() {
		if t.Source == source {
			return t.view.detail.Get(ctx), t.view.history.Hour(), true
		}
	}
	return nil, nil, false
}
