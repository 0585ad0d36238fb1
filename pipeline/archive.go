package pipeline

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// applyOptions returns what the sinks need to know about the table in this life, except for the way
// into the log, and the table's archive; nil: it has none.
func (t *table) applyOptions(s *checkpoint.State) (apply.Options, *archiving.Archiver) {
	o := apply.Options{
		Table: apply.Table{
			Source: t.Source, Target: t.Target, Halts: t.OnReject == "halt", Classes: t.Archive.Classes, Program: t.row.Program,
		},
		Log: t.currentLog(), Retry: t.o.Periods.Retry, Agreed: t.row.Agreed(), Stats: t.stats, Logger: t.log,
		Retention: t.view.retentionLeft, Park: t.o.Periods.Park, Tracer: t.o.Tracer,
	}
	arch := t.newArchiver(s)
	if arch != nil { // not a nil *Archiver, which would be an Archive
		o.Archive = arch
	}
	return o, arch
}

// newArchiver returns the archive of the table for a life; nil where it has none.
func (t *table) newArchiver(s *checkpoint.State) *archiving.Archiver {
	if !t.Archive.On || t.o.Archive == nil || !t.row.Program.Archives() {
		t.view.archiver.Store(nil)
		return nil
	}
	place := *t.o.Archive
	if own := t.Archive; own.Form.Format != "" {
		place.Form, place.Roll = own.Form, own.Roll
	}
	o := archiving.Options{
		Place: place, Pipeline: t.o.Name, Table: t.Source, Owner: t.o.Owner, Life: s.Life, Epoch: s.Epoch,
		Open: t.currentLog().Archive, Now: t.now, Retry: t.o.Periods.Retry, Facts: t.view.archiveFacts,
		FromStart: s.LastFrame == 0 && s.Life <= 1, Recovered: s.LastFrame == 0 && s.Life > 1,
		Metrics: t.archives, Logger: t.log,
	}
	_, marked := s.Marks[apply.SinkArchive]
	o.Resumed = !marked && s.LastFrame != 0
	if s.Expired.Head != nil {
		o.Known = *s.Expired.Head
	}
	for sink := range s.AllHalts() {
		if strings.HasPrefix(sink, apply.SinkArchive+".") {
			o.Halted = append(o.Halted, sink)
		}
	}
	// They are called once the life can append.
	o.Halt = func(ctx context.Context, sink, code, reason string) error {
		return t.appendHalt(ctx, sink, code, reason)
	}
	o.Clear = t.appendClear
	o.Letter = func(ctx context.Context, e *transform.Event, body []byte, code, reason string) error {
		return t.letters.StoreEvent(ctx, e, body, code, reason)
	}
	a := archiving.New(o)
	t.view.archiver.Store(a)
	t.view.observeArchive(s)
	return a
}

// archiveBeside runs the archive while the sinks work.
func (t *table) archiveBeside(ctx context.Context, g *errgroup.Group, a *archiving.Archiver, in *ingest.Ingest) {
	if a == nil {
		return
	}
	t.append.Store(&appender{in.Append})
	g.Go(func() error { return a.Run(ctx) })
}

// newHealer returns what heals the archive's part of gaps at a request.
func (t *table) newHealer(a *archiving.Archiver, in *ingest.Ingest) *archiving.Healer {
	return archiving.NewHealer(archiving.HealOptions{
		Archive: a, Now: t.now, Logger: t.log, TableARN: t.info.ARN, TTLAttr: t.info.TTLAttr,
		Gaps: t.view.archiveGaps, Open: t.openIncremental,
		Letters: func() int { return t.letters.CountOf(apply.SinkArchive) }, Event: t.row.Program.Archive, Append: in.Append,
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

// appender appends an entry to the table's log.
type appender struct {
	append func(ctx context.Context, body any) error
}

func (t *table) appendHalt(ctx context.Context, sink, code, reason string) error {
	now := t.now()
	h := &checkpoint.Halt{Sink: sink, Code: code, Reason: reason, At: now}
	return t.append.Load().append(ctx, &checkpoint.Control{Halt: h, By: "owner", At: now})
}

func (t *table) appendClear(ctx context.Context, sink string) error {
	return t.append.Load().append(ctx, &checkpoint.Control{Clear: true, ClearSink: sink, By: "owner", At: t.now()})
}
