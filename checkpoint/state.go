package checkpoint

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// State is what the entries of a log add up to. Only Apply changes it (Rule 2).
type State struct {
	Chain
	Seq uint64 // sequence of the last message folded, foreign ones included

	Owner    string    // of the newest claim
	Life     uint64    // of the newest claim; raised by `recover`
	Identity *Identity // whose log it is

	Streams []*Stream // in the order of their start; the last is the live one
	Shards  map[string]*Shard
	Marks   map[string]Mark
	Gaps    []Gap
	Paused  bool
	Pausing Pausing          // since when and by whom, while Paused
	Halts   map[string]*Halt // by sink

	Date           change.Millis  // newest service clock that was reported
	Listed         change.Millis  // when the newest complete listing began
	LastFrame      uint64         // sequence of the newest entry that holds changes
	Changes        uint64         // in all frames so far
	DroppedVersion change.Version // highest version of the shards that were forgotten
	Watermarks     []Watermark    // rising; the first is the newest that all sinks have passed
	Starting       *Start         // the parts so far of a start that is not complete

	Backfill   string         // what the first start says: FromScan, FromExport, or empty
	notCopied  int64          // what the first start says, until that is copied: see NotCopied
	Copy       *CopyState     // the newest copy
	Resync     *PendingResync // of the whole table; nil when none is pending
	LastResync *Healed
	Accepting  *Accept // a mapping that is to be switched
	Accepted   *Accept // the newest that was
	Switched   *Switch // one that was, until its copy begins
	Fence      *Fence  // of a cutover
	Proof      Proof   // from the owner's beats

	Expired ExpiredCounts // deletions by TTL
	Events  []Event       // that operators may ask for, the newest last

	Reads      int    // the highest format that the owner's build reads
	ReleasedTo string // the owner that the released log is handed over to

	Foreign uint64 // messages that are not entries of the chain

	SnapshotFirst      uint64 // sequence of the first part of the last complete snapshot
	SnapshotLast       uint64
	BytesSinceSnapshot int64 // bytes of entries since then

	partFirst uint64 // of the snapshot that is being written
	partNext  int

	index index
}

// NewState returns the state of an empty log.
func NewState() *State {
	return &State{Shards: map[string]*Shard{}, Marks: map[string]Mark{}, index: newIndex()}
}

// NotCopied returns about how many items the table held at its first start that nothing has copied
// since: neither a copy, nor a resync of the whole table.
func (s *State) NotCopied() int64 { return s.notCopied }

// LowMark returns the mark of the sink that is furthest behind; 0 without sinks.
func (s *State) LowMark() uint64 {
	low := uint64(0)
	for i, m := range slices.Collect(maps.Values(s.Marks)) {
		if i == 0 || m.Seq < low {
			low = m.Seq
		}
	}
	return low
}

// HighestVersion returns the highest version that was ever assigned, or a floor above it.
func (s *State) HighestVersion() change.Version { return max(s.DroppedVersion, s.index.top) }

// MissingParents returns the parents that waiting shards name and that no listing in the log has
// shown.
func (s *State) MissingParents() []string { return slices.Sorted(maps.Keys(s.index.missingParents)) }

// ShardCounts returns how many shards are open, closed but not read to their end, waiting, and
// done.
func (s *State) ShardCounts() (open, closed, waiting, done int) {
	n := &s.index.counts
	return n[roleOpen], n[roleClosed], n[roleWaiting], n[roleDone]
}

// OwnedBy reports whether the log is owned by the process that claimed an epoch with a nonce.
func (s *State) OwnedBy(epoch uint64, nonce Nonce) bool {
	return s.Epoch == epoch && s.Nonce == nonce && !s.Released
}

// TrimBelow returns the sequence below which a log that begins at first may be trimmed; 0 for not
// at all. free is where the caller's needs begin, acked the newest append that the server has
// acknowledged to the owner since its last fold.
//
// Only entries below that append are deleted. Otherwise an owner would delete entries that the new
// owner needs, after it lost its claim or its log went back to an older copy.
func (s *State) TrimBelow(first, free, acked uint64) uint64 {
	floor := min(free, s.SnapshotFirst)
	if len(s.Marks) > 0 {
		floor = min(floor, s.LowMark()+1)
	}
	if floor <= first || floor >= acked {
		return 0
	}
	return floor
}
