package protocol

import "github.com/tailrace-cdc/replicator/checkpoint"

// Pass judges what a pass over a log into Bigtable or the archive does with each entry.
type Pass struct {
	Epoch uint64            // of the owner's claim
	Fence *checkpoint.Fence // nil: there is none, or the pass does not stop at it
}

// PassStep is what a pass does next.
type PassStep uint8

// The steps.
const (
	PassApplies PassStep = iota // what the entry holds
	PassHolds                   // it waits at the fence, until the life ends
	PassEnds                    // the log has a later owner
)

// Before returns the step before the entry at a sequence is read.
//
// Rule 12: behind a fence nothing is written to Bigtable, whatever process owns the log, and after
// any restart. An owner that has not read the fence cannot read past it: it has appended nothing
// there, and applies no later owner's entries.
func (p Pass) Before(seq uint64) PassStep {
	if p.Fence.Stops(seq) {
		return PassHolds
	}
	return PassApplies
}

// Next returns the step with an entry that was read; it may be a later one than the next.
//
// Rule 2: an owner that did not notice a later claim applies nothing of what follows it. The later
// owner may have switched the mapping, and a write of the old one at the same version would stand
// in the way of the new one's.
func (p Pass) Next(seq uint64, e *checkpoint.Entry) PassStep {
	if e.Epoch > p.Epoch {
		return PassEnds
	}
	return p.Before(seq)
}
