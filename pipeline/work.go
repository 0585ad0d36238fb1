package pipeline

import (
	"context"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/queue"
)

// newLife returns the life that goes on from what the claimed log holds.
func (t *table) newLife(w *queue.Writer) *life.Life {
	l, s := life.New(t.yielding.Load(), t.o.Periods.Shutdown), w.State()
	l.Pipeline, l.Source, l.Target, l.Info, l.Info.Name = t.o.Name, t.Source, t.Target, t.info, t.Source
	l.Log, l.Claim, l.Number, l.Floor = t.currentLog(), w, s.Life, s.Floor()
	l.Now, l.Lead, l.Logger = t.now, t.row.Reserved, t.log
	return l
}

// work runs reading, writing and the sinks of one life.
//
//	readers ─► pages ─► write loop ─► log ─► sinks
//	                        ▲                  │ marks
//	                        └──────────────────┘
func (t *table) work(l *life.Life, w *queue.Writer, o apply.Options, arch *archiving.Archiver) error {
	reads := t.ingestOptions(l)
	if arch != nil {
		reads.ArchiveHead = arch.Head
	}
	in := ingest.New(reads, w, t.pressure)
	l.Append, l.Prove, l.Unproven = in.Append, in.Prove, in.Unproven
	t.gate.Begin()
	l.Observe(w.State())
	sinks := apply.New(t.shared, o, t.letters, w.State())
	t.view.publish(func(s *snapshot) {
		s.phase, s.parts.reading = phaseWorking, in
		if sinks[0].Name() == checkpoint.SinkBigtable { // the archive's, where it is the only one, is not asked
			s.parts.sink = sinks[0]
		}
	})
	defer t.view.endWork()
	marked := make([]ingest.Sink, len(sinks))
	format, full := w.State().Format, t.full
	parts := []life.Part{
		{Ends: life.Reading, Run: in.Read},
		{Ends: life.Reading, Run: in.List},
		{Ends: life.Reading, Run: t.watchPremises},
		{Ends: life.Reading, Run: t.watchSettings},
		{Ends: life.Reading, Run: func(ctx context.Context) error { return t.watchRow(ctx, w) }},
		{Ends: life.Reading, Run: func(ctx context.Context) error { return t.format.Follow(ctx, format, full) }},
		{Ends: life.Reading, Run: func(ctx context.Context) error { return t.writeHeartbeats(ctx, reads.Heartbeats) }},
		{Ends: life.Applying, Run: func(ctx context.Context) error { return t.row.Confirm(ctx, l.Number, l.Log, l.Info) }},
		{Ends: life.Applying, Run: func(ctx context.Context) error { return t.letters.Watch(ctx, t.o.Periods.Trim) }},
	}
	for i, s := range sinks {
		marked[i] = s
		parts = append(parts, life.Part{Ends: life.Applying, Run: s.Run})
	}
	if arch != nil {
		parts = append(parts, life.Part{Ends: life.Applying, Run: arch.Run})
	}
	parts = append(parts, t.repairs(l, w, o, sinks[0], arch)...)
	return l.Run(func(ctx context.Context) error {
		saved, err := in.Write(ctx, marked)
		t.view.publish(func(s *snapshot) { s.saved = saved })
		return err
	}, parts...)
}

// repairs returns the parts that make rows true when the log or a command asks for it: copies,
// resyncs, comparisons, and the requests of commands.
func (t *table) repairs(
	l *life.Life, w *queue.Writer, o apply.Options, sink *apply.Sink, arch *archiving.Archiver,
) (parts []life.Part) {
	s := w.State()
	items := t.resyncOptions(l, s, sink)
	items.Workers.Note = func(ctx context.Context, seq uint64) error { return t.noteDelegated(ctx, w, seq) }
	requests := t.newRequests(l, items, arch)
	t.view.publish(func(s *snapshot) { s.parts.requests = requests })
	if c := t.newCopier(s, items); c != nil {
		t.view.publish(func(s *snapshot) { s.parts.copier = c })
		parts = append(parts, life.Part{Ends: life.Copying, Run: c.Run, Save: func(ctx context.Context) error {
			defer t.view.publish(func(s *snapshot) { s.parts.copier = nil })
			return c.Save(ctx)
		}})
	}
	if t.archivedOnly() {
		return append(parts, life.Part{Ends: life.Reading, Run: func(ctx context.Context) error {
			return t.serveArchived(ctx, o, requests)
		}})
	}
	if s.Fence != nil { // Rule 12: behind a fence the table is read, and that is all
		return parts
	}
	whole := &resync.Whole{
		Options: items, Program: t.row.Program, Sharing: t.sharing, Client: t.bigtable,
		Scratch: filepath.Join(t.o.Scratch, "resync"),
	}
	t.view.publish(func(s *snapshot) { s.parts.whole = whole })
	parts = append(parts,
		life.Part{Ends: life.Reading, Run: whole.Run},
		life.Part{Ends: life.Reading, Run: requests.Run},
		life.Part{Ends: life.Reading, Run: func(ctx context.Context) error { return t.followCluster(ctx, l) }},
	)
	if t.OnGap == onGapHeal {
		parts = append(parts, life.Part{Ends: life.Reading, Run: func(ctx context.Context) error {
			return resync.HealGaps(ctx, l, t.o.Periods.Retry)
		}})
	}
	if t.Verify != (Verify{}) {
		parts = append(parts, life.Part{Ends: life.Reading, Run: func(ctx context.Context) error {
			return t.verifyBeside(ctx, l, items)
		}})
	}
	return parts
}

// newRequests returns what serves the requests of commands.
func (t *table) newRequests(l *life.Life, items resync.Options, arch *archiving.Archiver) *resync.Requests {
	return &resync.Requests{
		Options: items, Program: t.row.Program, Client: t.bigtable,
		Foreign: t.foreign(l).Delete, Heal: t.newHealer(l, arch).Heal,
	}
}

// onGapHeal is the OnGap of a table with gaps that are accepted and healed without an operator.
const onGapHeal = "heal"

// ingestOptions returns what reading and writing need to know about the table in this life.
func (t *table) ingestOptions(l *life.Life) ingest.Options {
	return ingest.Options{
		Life: l, Source: t.source, MaxPayload: t.queue.MaxPayload(), Periods: t.o.Periods.Ingest(), Row: t.row,
		Heartbeats: t.newHeartbeats(), HeartbeatEvery: t.Heartbeat.Every,
		Observe: func(s *checkpoint.State, p queue.Pressure) {
			t.pressure = p
			l.Observe(s)
			t.observe(s)
		},
		Beating: t.view.beating, TableGone: t.view.tableGone, Tracer: t.o.Tracer,
	}
}
