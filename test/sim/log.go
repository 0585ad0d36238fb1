package sim

import (
	"encoding/binary"
	"errors"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// server is JetStream as far as one log goes: messages with rising numbers, an append that names
// the last number that its writer has read, replicas that lag behind the leader, a store that may
// lose its tail.
type server struct {
	msgs  []message // from the first one ever, also what was trimmed: the invariants need it
	first uint64    // of those that are left
	truth *checkpoint.State

	lostTail bool   // at some time: an acknowledgement proves nothing any more
	created  int    // how often the log was made
	away     bool   // nobody reaches it
	conn     uint64 // raised when it comes back
	late     []lateAppend
}

type message struct {
	data    []byte
	entry   *checkpoint.Entry // decoded; nil: not an entry
	counts  bool              // it is an entry of the chain
	records []stored          // of a frame
}

// stored is a record in a frame.
type stored struct {
	record  *record
	version change.Version
}

// lateAppend is an append that is still under way although its writer has given it up.
type lateAppend struct {
	created  int
	expected uint64
	data     []byte
}

var (
	errWrongLast = errors.New("wrong last sequence")
	errUnknown   = errors.New("no acknowledgement")
)

func newServer() *server { return &server{first: 1, truth: checkpoint.NewState()} }

func (l *server) last() uint64 { return uint64(len(l.msgs)) }

func (l *server) at(seq uint64) *message { return &l.msgs[seq-1] }

// decodeRecords reads the records of a frame.
func (w *World) decodeRecords(data []byte) (all []stored) {
	for len(data) > 0 {
		n, size := binary.Uvarint(data)
		v, more := binary.Uvarint(data[size:])
		data = data[size+more:]
		all = append(all, stored{w.records[n-1], change.Version(v)})
	}
	return all
}
