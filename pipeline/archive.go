package pipeline

import (
	"context"
	"strings"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// applyOptions returns what the sinks need to know about the table in this life, except for the way
// into the log, and the table's archive; nil: it has none.
func (t *table) applyOptions(l *life.Life, s *checkpoint.State) (apply.Options, *archiving.Archiver) {
	t.stats.From(s.Streams[0].Date)
	o := apply.Options{
		Life:  l,
		Table: apply.Table{Halts: t.OnReject == "halt", Classes: t.Archive.Classes, Program: t.row.Program},
		Retry: t.o.Periods.Retry, Agreed: t.row.Agreed(), Stats: t.stats, Gate: &t.gate,
		Retention: t.view.retentionLeft, Park: t.o.Periods.Park, Tracer: t.o.Tracer,
	}
	arch := t.newArchiver(l, s)
	if arch != nil { // a nil *Archiver would make an Archive that is not nil
		o.Archive = arch
	}
	return o, arch
}

// newArchiver returns the archive of the table for a life; nil where it has none.
func (t *table) newArchiver(l *life.Life, s *checkpoint.State) *archiving.Archiver {
	if !t.Archive.On || t.o.Archive == nil || !t.row.Program.Archives() {
		t.view.publish(func(s *snapshot) { s.parts.archiver = nil })
		return nil
	}
	place := *t.o.Archive
	if own := t.Archive; own.Form.Format != "" {
		place.Form, place.Roll = own.Form, own.Roll
	}
	o := archiving.Options{
		Place: place, Pipeline: t.o.Name, Table: t.Source, Owner: t.o.Owner, Life: s.Life, Epoch: s.Epoch,
		Open: l.Log.Archive, Now: l.Now, Retry: t.o.Periods.Retry,
		FromStart: s.LastFrame == 0 && s.Life <= 1, Recovered: s.LastFrame == 0 && s.Life > 1,
		Metrics: t.archives, Logger: t.log,
	}
	_, marked := s.Marks[checkpoint.SinkArchive]
	o.Resumed = !marked && s.LastFrame != 0
	if s.Expired.Head != nil {
		o.Known = *s.Expired.Head
	}
	for sink := range s.AllHalts() {
		if strings.HasPrefix(sink, checkpoint.SinkArchive+".") {
			o.Halted = append(o.Halted, sink)
		}
	}
	o.Halt = func(ctx context.Context, sink, code, reason string) error {
		now := l.Now()
		h := &checkpoint.Halt{Sink: sink, Code: code, Reason: reason, At: now}
		return l.Append(ctx, &checkpoint.Control{Halt: h, By: "owner", At: now})
	}
	o.Clear = func(ctx context.Context, sink string) error {
		return l.Append(ctx, &checkpoint.Control{Clear: true, ClearSink: sink, By: "owner", At: l.Now()})
	}
	o.Letter = func(ctx context.Context, e *transform.Event, body []byte, code, reason string) error {
		return t.letters.StoreEvent(ctx, e, body, code, reason)
	}
	a := archiving.New(o)
	t.view.publish(func(s *snapshot) { s.parts.archiver = a })
	a.Observe(s)
	return a
}

// newHealer returns what heals the archive's part of gaps at a request.
func (t *table) newHealer(l *life.Life, a *archiving.Archiver) *archiving.Healer {
	return archiving.NewHealer(archiving.HealOptions{
		Archive: a, Now: l.Now, Logger: l.Logger, TableARN: l.Info.ARN, TTLAttr: l.Info.TTLAttr,
		Gaps: a.Gaps, Open: t.openIncremental,
		Letters: func() int { return t.letters.CountOf(checkpoint.SinkArchive) },
		Event:   t.row.Program.Archive, Append: l.Append,
	})
}

// openIncremental opens an export of the table by its URL or its ARN.
func (t *table) openIncremental(ctx context.Context, name string) (*export.Export, error) {
	if strings.HasPrefix(name, "arn:") {
		st, err := t.source.ExportStatus(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case st.Failure() != nil:
			return nil, &archiving.RefusedError{What: st.Failure().Error(), Hint: "export the table again"}
		case st.Status != source.ExportCompleted:
			return nil, &archiving.RefusedError{What: "export " + name + " is " + st.Status, Hint: "repeat the command later"}
		}
		name = st.URL
	}
	return export.Open(ctx, name, export.Want{TableID: t.info.ID, Source: t.source, Scratch: t.o.Scratch})
}
