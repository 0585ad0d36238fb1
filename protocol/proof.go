package protocol

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Missing is what a Proof still lacks. The empty value means that it lacks nothing.
type Missing string

// What a Proof may lack.
const (
	MissingNothing Missing = ""
	// MissingStream: the table's stream is not started.
	MissingStream Missing = "stream_not_started"
	// MissingEnabled: the stream is disabled, so what is written now is in no stream.
	MissingEnabled Missing = "stream_disabled"
	// MissingAccept: shards stand before a gap that is not accepted.
	MissingAccept Missing = "gap"
	// MissingReader: a listing shows a shard without an end that is not read.
	MissingReader Missing = "shard_unread"
	// MissingListing: no complete listing of the shards was begun since.
	MissingListing Missing = "listing"
	// MissingRead: a shard is not read so far, or its children are not listed yet.
	MissingRead Missing = "read"
	// MissingApplied: a sink has not applied what is in the log.
	MissingApplied Missing = "applied"
	// MissingSink: the Bigtable sink is halted. A Proof that waits lacks what it has not applied;
	// only NoProof means that it will not.
	MissingSink Missing = "sink_halted"
	// MissingCopy: the copy of older items is not complete. Only a Goal requires it.
	MissingCopy Missing = "copy"
	// MissingResync: the resync that heals a gap, or that follows a recovery, is not complete. Only
	// a Goal requires it.
	MissingResync Missing = "resync"
)

// Proof decides when everything that was created up to Through, a time of the service, is read and
// applied. It is the only judge of that question (Rule 14). The owner of a log calls it before it
// writes an item that it read from the table, commands before they compare, certify or return, and
// the simulation after each step.
//
// Rule 10: it rests on a complete listing begun after that time, on reads of every shard of the
// listing that reach past it, and on the mark of a sink. A proof that was complete becomes
// incomplete again when a listing shows children of a shard: the read watermark falls.
type Proof struct {
	Through change.Millis
	// BesideGaps leaves out the shards that stand before a gap that is not accepted, and their
	// descendants: is everything else applied?
	BesideGaps bool

	read  bool   // everything up to Through is in the log
	entry uint64 // the newest entry with changes when that was observed
}

// Read reports whether the log held everything up to Through at the last look.
func (p *Proof) Read() bool { return p.read }

// Look returns what the proof lacks in a state of the log. mark is the entry up to which a sink has
// applied the log.
func (p *Proof) Look(s *checkpoint.State, mark uint64) Missing {
	if missing := p.unread(s); missing != MissingNothing {
		p.read = false
		return missing
	}
	return p.applied(s, mark)
}

// LookByHeartbeats is Look with another evidence: heartbeats that came through every open shard
// prove what is read.
func (p *Proof) LookByHeartbeats(s *checkpoint.State, mark uint64) Missing {
	if s.Proof.Assumed > 0 || s.Proof.Read < p.Through {
		p.read = false
		return MissingRead
	}
	return p.applied(s, mark)
}

// applied returns whether the sink lacks an entry, given that everything up to Through is in the
// log.
func (p *Proof) applied(s *checkpoint.State, mark uint64) Missing {
	if !p.read {
		p.read, p.entry = true, s.LastFrame
	}
	if mark < p.entry && s.AppliedAt(mark) < p.Through {
		return MissingApplied
	}
	return MissingNothing
}

// NoProof returns why no proof of the present can come while a log is like this, whatever time
// passes: what an operator must end first stands first; nothing where a proof can come. It is the
// only judge of that question (Rule 14): a Proof that waits, status, and commands before they wait
// ask it. That an owner must be there to read and apply is a question for Alive.
func NoProof(s *checkpoint.State) (why []Missing) {
	if s.AllHalts()[checkpoint.SinkBigtable] != nil {
		why = append(why, MissingSink)
	}
	return append(why, nothingRead(s, false)...)
}

// nothingRead returns why nothing more is read, or not of every shard.
func nothingRead(s *checkpoint.State, besideGaps bool) (why []Missing) {
	live := s.LiveStream()
	if live == nil {
		return []Missing{MissingStream}
	}
	if live.Disabled {
		why = append(why, MissingEnabled)
	}
	if !besideGaps && len(s.GappedShards()) > 0 {
		why = append(why, MissingAccept)
	}
	return why
}

// unread returns why it is not known that everything up to Through is in the log.
func (p *Proof) unread(s *checkpoint.State) Missing {
	ended, read := nothingRead(s, p.BesideGaps), s.ReadWatermark()
	if p.BesideGaps && len(s.GappedShards()) > 0 {
		read = s.ReadWatermarkBesideGaps()
	}
	switch {
	case s.LiveStream() == nil:
		return MissingStream
	case len(unreadOpen(s)) > 0: // whatever the watermark is: Rule 13
		return MissingReader
	case s.Listed >= p.Through && read >= p.Through:
		return MissingNothing
	case len(ended) > 0:
		return ended[0]
	case s.Listed < p.Through:
		return MissingListing
	}
	return MissingRead
}

// unreadOpen returns the shards that the log counts as read to their end and that a listing shows
// without an end.
func unreadOpen(s *checkpoint.State) []string {
	gapped := s.GappedShards()
	return slices.DeleteFunc(s.UnreadOpenShards(), func(id string) bool { return slices.Contains(gapped, id) })
}

// Why describes for people what the proof lacks in a state; "" for nothing.
func (p *Proof) Why(m Missing, s *checkpoint.State) string {
	switch m {
	case MissingNothing:
		return ""
	case MissingStream:
		return "the table's stream is not started"
	case MissingEnabled:
		return "the table's stream is disabled: what is written now is in no stream; enable it"
	case MissingAccept:
		return fmt.Sprintf("%d shards stand before a gap: accept it with `replicator resume`", len(s.GappedShards()))
	case MissingReader:
		return fmt.Sprintf("%d shards that take writes are not read", len(unreadOpen(s)))
	case MissingListing:
		return "no complete listing of the shards was begun since"
	case MissingRead:
		return "a shard is not read so far, or its children are not listed yet"
	case MissingSink:
		return "the Bigtable sink is halted"
	case MissingCopy:
		return "the copy of older items is not complete"
	case MissingResync:
		return "the comparison of the whole table, with its repairs, is not complete"
	case MissingApplied:
		return fmt.Sprintf("Bigtable has not applied entry %d of the log yet", p.entry)
	}
	return string(m)
}
