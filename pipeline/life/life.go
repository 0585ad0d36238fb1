// Package life is what the parts of a table share while a process owns the table's log, and the
// order in which they end.
//
//	l := life.New(leaving, 25*time.Second)
//	err := l.Run(write,
//		life.Part{Ends: life.Copying, Run: copier.Run, Save: copier.Save},
//		life.Part{Ends: life.Reading, Run: in.Read},
//		life.Part{Ends: life.Applying, Run: sink.Run})
//
// A life that fails ends all parts at once: what is in memory is lost, and what is stored counts. A
// life that is left drains, in stages:
//
//	copies end and store their last marks → reading ends → the writer drains and returns → applying ends
package life

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// Life is the work on one table from what is stored, under one claim of its log. The fields are set
// before Run and never change. Any goroutine may call its methods.
type Life struct {
	Pipeline, Source string
	Target           string           // "": none
	Info             source.TableInfo // as DynamoDB described it before; Name is Source
	Log              *queue.Log
	Claim            Claim
	Number           uint64               // of the log's life, which a recovery begins anew
	Floor            change.Version       // every version of the stream is above it; 0 in a target that held nothing
	Now              func() change.Millis // the service's clock
	// Lead returns how far versions may be ahead of the service's clock.
	Lead   func() time.Duration
	Facts  func() *Facts // what the log holds; the result must not be changed
	Logger *zap.Logger

	// MayWrite blocks until no other process can have claimed the log. It returns an error once the
	// parts that apply end. It is asked before every attempt to write to Bigtable; nil: it is not.
	MayWrite func() error
	// Append stores an entry in the log. It blocks until the entry is durable.
	Append func(ctx context.Context, body any) error
	// Prove blocks until Bigtable has every change that was created up to a time of the service;
	// Unproven returns what it waits for, "" for nothing.
	Prove    func(ctx context.Context, through change.Millis) error
	Unproven func() string

	facts atomic.Pointer[Facts] // what Observe found last

	leaving      *Leaving
	drain        time.Duration
	stop         context.CancelCauseFunc // ends everything at once
	parts        *errgroup.Group         // and the writer
	working      context.Context         // of parts
	applying     context.Context         // of the parts that apply; within working
	stopApplying context.CancelFunc
}

// Claim is the claim of the log: *queue.Writer.
type Claim interface {
	// ClaimValid reports whether no other process can have claimed the log: see protocol.MayWrite.
	ClaimValid() bool
}

// Facts are what the log holds that the parts act on, as the writer found it last.
type Facts struct {
	Applied change.Millis // Bigtable has every change up to it; 0 before every shard was read once
	protocol.RowFacts
	// Delegated is the entry that has delegated the copy to workers; 0: none may write.
	Delegated uint64
	Resync    *checkpoint.PendingResync // of the whole table, that the log asks for; nil for none
	Resynced  *checkpoint.Healed        // the last resync of the whole table that is complete; nil for none
	ToHeal    []string                  // ids of the gaps that nothing heals yet
	Damaged   bool                      // damage of the log itself is among them, at which sinks have halted
}

// Observe publishes what the log holds. The goroutine that owns the log's writer calls it, first
// before Run.
func (l *Life) Observe(s *checkpoint.State) {
	f := &Facts{
		Applied: s.AppliedBy(checkpoint.SinkBigtable), RowFacts: protocol.RowFactsOf(s),
		Resync: s.Resync, Resynced: s.LastResync,
	}
	if s.Copy != nil {
		f.Delegated = s.Copy.Delegated
	}
	for _, g := range s.GapsToHeal() {
		f.ToHeal = append(f.ToHeal, g.ID())
		f.Damaged = f.Damaged || g.Feed.Shard == "" && !g.Accepted
	}
	l.facts.Store(f)
}

// GapsUntil returns the end of the latest gap that was found; 0 without one.
func (l *Life) GapsUntil() change.Millis { return l.Facts().GapsUntil }

// Behind returns how old the newest change is that Bigtable may lack; 0 before that is known, which
// Prove waits for.
func (l *Life) Behind() time.Duration {
	applied := l.Facts().Applied
	if applied == 0 {
		return 0
	}
	return max(0, time.Duration(l.Now()-applied)*time.Millisecond)
}

// Successor returns the process that goes on with the log of a life that is left; "" for none in
// particular.
func (l *Life) Successor() string { return l.leaving.Successor() }

// claimPause is how often an owner that was silent looks whether its claim holds again.
const claimPause = 10 * time.Millisecond

// mayWrite is MayWrite.
//
// Rule 12: see protocol.MayWrite for the reason. The owner's next append shows whether it owns the
// log; until then it writes nothing.
func (l *Life) mayWrite() error {
	for !l.Claim.ClaimValid() {
		if err := failure.Pause(l.applying, claimPause); err != nil {
			return err
		}
	}
	return nil
}
