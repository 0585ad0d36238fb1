package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// Progress is a line of demo --json while the applications write.
type Progress struct {
	Schema  int     `json:"schema"` // set by the command
	Type    string  `json:"type"`   // "progress"
	Elapsed float64 `json:"elapsed_s"`
	Writes  int64   `json:"writes"`
	Changes uint64  `json:"changes"` // in the log
	Rate    float64 `json:"rate_per_s"`
	Lag     float64 `json:"lag_ms"` // of the last probe; -1 before the first
	Shards  int     `json:"shards"`
	Queue   uint64  `json:"queue_bytes"`
	Copied  int64   `json:"copied"`  // items that are older than the stream
	ToCopy  int64   `json:"to_copy"` // of so many
	State   string  `json:"state"`
	Pauses  string  `json:"reading_pauses,omitempty"` // why nothing is read now: the disk has little room
}

// String returns the progress as a line for people, without the time.
func (p *Progress) String() string {
	lag := "lag         –" // nothing was measured yet
	if p.Lag >= 0 {
		lag = fmt.Sprintf("lag %6.0f ms", p.Lag)
	}
	return fmt.Sprintf("%9s changes  %7s/s  %s  %2d open shards  log %8s  %s", humanize.Comma(int64(p.Changes)),
		humanize.Comma(int64(p.Rate)), lag, p.Shards, humanize.IBytes(p.Queue), p.State)
}

// report calls Options.Progress every second until ctx ends.
func (s *Stage) report(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		status := s.status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		before := s.last.Copied
		p := s.progress(status)
		if status != nil {
			s.notePause(p.Pauses)
		}
		if err := s.o.Progress(p); err != nil {
			return err
		}
		if before < p.ToCopy && p.Copied == p.ToCopy {
			s.o.Say(fmt.Sprintf("all %s older items are in Bigtable; from here on the stream is enough",
				humanize.Comma(p.Copied)))
		}
	}
}

// progress returns the progress from the replicator's status; a nil status means that the
// replicator did not answer.
func (s *Stage) progress(status *pipeline.Status) *Progress {
	p := &Progress{
		Type: "progress", Elapsed: time.Since(s.began).Seconds(), Writes: s.writer.Calls() + s.gallery.Calls(),
		Lag: s.lags.last(), State: "down",
	}
	p.ToCopy = s.old.Total()
	if status != nil {
		p.Copied = s.copied.look(status, s.old)
		p.sum(status)
		p.Changes = max(p.Changes, s.last.Changes) // a replicator that starts does not know all logs yet
	} else { // repeat the last answer
		p.Changes, p.Shards, p.Queue, p.Copied = s.last.Changes, s.last.Shards, s.last.Queue, s.last.Copied
	}
	p.Rate = float64(p.Changes-min(p.Changes, s.last.Changes)) / max(0.001, p.Elapsed-s.last.Elapsed)
	if status != nil {
		s.last = *p
	}
	return p
}

// sum adds up the status of all tables.
func (p *Progress) sum(status *pipeline.Status) {
	running := 0
	for _, t := range status.Tables {
		p.Changes, p.Shards, p.Queue = p.Changes+t.Changes, p.Shards+t.Shards.Open, p.Queue+t.Queue.Bytes
		if t.State == "running" {
			running++
		}
	}
	p.Pauses = pauseOf(status)
	switch {
	case p.Pauses != "":
		p.State = "reading pauses"
	case status.Ready:
		p.State = "ready"
	case p.Copied < p.ToCopy:
		p.State = fmt.Sprintf("copying: %s of %s items", humanize.Comma(p.Copied), humanize.Comma(p.ToCopy))
	case running < len(status.Tables):
		p.State = fmt.Sprintf("%d of %d tables running", running, len(status.Tables))
	default:
		p.State = "running"
	}
}

// pauseOf returns why the reading of a table pauses; "" if none does.
func pauseOf(status *pipeline.Status) string {
	for _, t := range status.Tables {
		if t.PauseReason != "" {
			return t.PauseReason
		}
	}
	return ""
}

// notePause prints that reading pauses, or goes on: a demo that waits for room looks as if it hung.
func (s *Stage) notePause(why string) {
	switch {
	case why != "" && s.pause == "":
		s.o.Say("reading pauses: " + why)
	case why == "" && s.pause != "":
		s.o.Say("reading goes on")
	}
	s.pause = why
}

// watchDrain shows the progress every few seconds, prints why reading pauses, and calls moved each
// time that more has been read, copied or applied.
func (s *Stage) watchDrain(ctx context.Context, moved func()) {
	last := ""
	for n := 1; failure.Pause(ctx, time.Second) == nil; n++ {
		status := s.status(ctx)
		if status == nil {
			continue
		}
		s.notePause(pauseOf(status))
		if n%3 == 0 {
			_ = s.o.Progress(s.progress(status)) // an error of the output is that of the next line
		}
		at := ""
		for _, t := range status.Tables {
			through, copied := time.Time{}, int64(0)
			if t.AppliedThrough != nil {
				through = *t.AppliedThrough
			}
			if t.Copy != nil {
				copied = t.Copy.Items
			}
			at += fmt.Sprintln(t.Changes, through, copied)
		}
		if at != last {
			moved()
		}
		last = at
	}
}

// copied is how many old items each table's copy had written when it was last seen.
type copied map[string]int64

// look notes how far the copies are, and returns the number of copied items, all tables together.
// The status of a table whose copy is complete does not show it any more; one whose replicator has
// just started shows nothing yet.
func (c *copied) look(status *pipeline.Status, old *Old) (total int64) {
	if *c == nil {
		*c = copied{}
	}
	for _, t := range status.Tables {
		switch {
		case t.Copy != nil:
			(*c)[t.Source] = max((*c)[t.Source], min(t.Copy.Items, old.items[t.Source]))
		case t.State == "running":
			(*c)[t.Source] = old.items[t.Source]
		}
		total += (*c)[t.Source]
	}
	return total
}

// status returns the replicator's status; nil if it does not answer within a second.
func (s *Stage) status(ctx context.Context) *pipeline.Status {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return control.Daemon(ctx, s.cfg)
}
