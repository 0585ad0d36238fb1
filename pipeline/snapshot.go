package pipeline

import (
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// snapshot is what is known of a table at one moment. It never changes: publish replaces it.
type snapshot struct {
	phase   phase
	loaded  bool          // the state was loaded once: a rollout need not wait for the table
	saved   bool          // the log was released with the newest marks in it
	unsaved bool          // the table ended as owner of a log that was not
	writer  *queue.Writer // of the claimed log; nil while it is not claimed
	changes uint64        // in the log, as the owner saw it last

	seen   *status.Observed // what the owner saw last; nil before the first claim, and beside a rival
	stored *status.Observed // what the log held before the last try to claim it; nil without a log
	unseen time.Time        // the start of the process, or later the last sign of life of a rival
	rival  *rival           // who else owns the log, while this process waits for it

	halt     *checkpoint.Halt
	haltedAt change.Millis     // of the first halt for the same reason without work since
	note     *status.Reason    // see Pipeline.Note
	denied   int               // how often in a row DynamoDB answered that it has no such table
	premises protocol.Premises // of the queue's streams, at the last look
	settings protocol.Premises // of Bigtable and the archive's bucket, at the last look

	parts parts
}

// phase is how far a table has come.
type phase int

const (
	phaseIdle    phase = iota // between two claims, or before the first
	phaseWaiting              // for the log, with everything else ready
	phaseClaimed              // this process owns the log
	phaseWorking              // and the parts of a life run
)

// parts are the parts of a life that show how far they are; each may be nil.
type parts struct {
	reading  *ingest.Ingest // nil between two lives
	sink     *apply.Sink    // into Bigtable; nil between two lives
	copier   *resync.Copier // that runs
	whole    *resync.Whole  // of the current life
	requests *resync.Requests
	verifier *continuous.Runner
	archiver *archiving.Archiver
}

// rival is another process that owns the table's log.
type rival struct {
	owner string
	epoch uint64
	moved time.Time // when the log was last seen to grow, or the owner was heard
}

// latest returns what is known now. It must not be changed.
func (v *tableView) latest() *snapshot {
	if s := v.current.Load(); s != nil {
		return s
	}
	return &snapshot{}
}

// publish replaces what is known by a copy that f has changed. f is called under a lock.
func (v *tableView) publish(f func(*snapshot)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := *v.latest()
	f(&next)
	v.current.Store(&next)
}

// setPhase publishes how far the table has come.
func (v *tableView) setPhase(p phase) { v.publish(func(s *snapshot) { s.phase = p }) }

// endWork publishes that the parts of a life have ended. Before the next life nothing publishes, for
// as long as the log cannot be read: a loop that does not run cannot stand still.
func (v *tableView) endWork() {
	v.publish(func(s *snapshot) {
		s.phase, s.parts.reading, s.parts.sink, s.parts.copier, s.parts.whole = phaseClaimed, nil, nil, nil, nil
	})
}

// broken returns the settings that are not as they must be.
func (s *snapshot) broken() protocol.Premises {
	return slices.Concat(s.premises.Broken(), s.settings.Broken())
}

// unnamed returns the settings that are not as they must be, without the one that the table's halt
// names already.
func (s *snapshot) unnamed(st *TableStatus) protocol.Premises {
	ofQueue := s.halt != nil && s.halt.Code == outcome.CodePremise
	ofSink := !ofQueue && st.Code == outcome.CodePremise
	return slices.Concat(besideHalt(s.premises, ofQueue), besideHalt(s.settings, ofSink))
}

// besideHalt returns the settings that are not as they must be; if they halted the table, without
// the unsafe one that did.
func besideHalt(found protocol.Premises, halted bool) protocol.Premises {
	broken := found.Broken()
	if i := slices.IndexFunc(broken, func(p protocol.Premise) bool { return p.Unsafe }); halted && i >= 0 {
		broken = slices.Delete(broken, i, i+1) // a copy: Broken clones
	}
	return broken
}
