package checkpoint

import (
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/change"
)

// memLog is a stream of messages as the server keeps it: who appends names the last sequence
// number.
type memLog struct {
	msgs [][]byte
	// format of its first claim; 0: the newest
	format int
	kept   bool // it stays in that format
	// life is raised when the log is lost, and the next start has floor. Then horizon says that the
	// stream is read from its trim horizon.
	life    uint64
	floor   change.Version
	horizon bool
	calm    bool // no time is lost, no entry, no stream: what a copy must carry comes from nowhere else
}

var errWrongLast = errors.New("wrong last sequence")

func (l *memLog) last() uint64 { return uint64(len(l.msgs)) }

func (l *memLog) append(expected uint64, msg []byte) error {
	if expected != l.last() {
		return errWrongLast
	}
	l.msgs = append(l.msgs, slices.Clone(msg))
	return nil
}

// fold adds everything up. An error is a log that contradicts itself.
func (l *memLog) fold(t testing.TB) *State {
	t.Helper()
	s := NewState()
	for i, m := range l.msgs {
		if _, err := s.Apply(uint64(i+1), m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// restored adds up the last complete snapshot and what follows: how a process starts.
func (l *memLog) restored(t testing.TB) *State {
	t.Helper()
	for last := len(l.msgs); last > 0; last-- {
		e, err := Decode(l.msgs[last-1])
		if err != nil || e.Kind != KindSnapshot {
			continue
		}
		b := e.Body.(*Snapshot)
		first := last - b.Part
		if b.Part != b.Parts-1 || first < 1 {
			continue
		}
		s, err := Restore(uint64(first), l.msgs[first-1:last])
		if err != nil {
			continue // interrupted, or foreign
		}
		if full := foldOf(t, l.msgs[:first-1]); full.Hash != s.Hash {
			continue // the queue looks whether what is before it is what it follows
		}
		for i := first; i <= len(l.msgs); i++ {
			if _, err := s.Apply(uint64(i), l.msgs[i-1]); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	return l.fold(t)
}

func foldOf(t testing.TB, msgs [][]byte) *State {
	t.Helper()
	return (&memLog{msgs: msgs}).fold(t)
}

// sameState compares two states in everything that later entries can depend on.
func sameState(t testing.TB, what string, want, got *State) {
	t.Helper()
	if d := cmp.Diff(stateJSON(want), stateJSON(got)); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(State{}, Chain{}, Shard{}), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
}

// stateJSON returns what a snapshot would store of a state, indented.
func stateJSON(s *State) string {
	var out bytes.Buffer
	b, err := encodeState(s)
	if err := errors.Join(err, json.Indent(&out, b, "", " ")); err != nil {
		panic(err)
	}
	return out.String()
}

// writer appends like package queue does: what it knows of the log is its state.
type writer struct {
	l     *memLog
	s     *State
	epoch uint64
	nonce Nonce
}

// message encodes an entry that continues what the writer knows.
func (w *writer) message(t testing.TB, body any, data []byte) []byte {
	t.Helper()
	e := &Entry{Kind: KindOf(body), Epoch: w.epoch, Nonce: w.nonce, Prev: w.s.Hash, Body: body, Data: data}
	msg, err := Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

var errStale = errors.New("the entry contradicts what is stored")

// append stores an entry and folds it into what the writer knows. After errWrongLast the writer is
// in doubt.
func (w *writer) append(t testing.TB, body any, data []byte) error {
	t.Helper()
	if err := w.s.CheckNext(body); err != nil {
		return errors.Join(errStale, err)
	}
	msg := w.message(t, body, data)
	if err := w.l.append(w.s.Seq, msg); err != nil {
		return err
	}
	if e, err := w.s.Apply(w.l.last(), msg); err != nil || e == nil {
		t.Fatalf("own %s entry at %d folds as %v, %v", KindOf(body), w.l.last(), e, err)
	}
	return nil
}

// claim takes the log over; the writer knows the log as it is now.
func claim(t testing.TB, l *memLog, s *State, owner string, nonce byte) (*writer, error) {
	t.Helper()
	w := &writer{l: l, s: s, epoch: s.Epoch + 1, nonce: Nonce{nonce, byte(s.Epoch), byte(s.Seq)}}
	c := &Claim{Owner: owner, Life: max(s.Life, l.life), Identity: &Identity{Table: owner}, Reads: Format}
	if s.Epoch == 0 {
		c.Format = stdcmp.Or(l.format, Format)
	}
	return w, w.append(t, c, nil)
}

func (w *writer) must(t testing.TB, bodies ...any) {
	t.Helper()
	for _, b := range bodies {
		if err := w.append(t, b, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// owned returns the writer of a log that holds a claim and the start of stream "arn" with these
// shards.
func owned(t testing.TB, shards ...ShardSeen) *writer {
	t.Helper()
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Date: 1_000_000, Shards: shards})
	return w
}

// snapshot appends the whole state in parts.
func (w *writer) snapshot(t testing.TB, maxPart int) error {
	t.Helper()
	parts, err := w.s.Snapshot(maxPart)
	if err != nil {
		t.Fatal(err)
	}
	return w.appendParts(t, parts)
}

// upgrade raises the log to the newest format.
func (w *writer) upgrade(t testing.TB, maxPart int) error {
	t.Helper()
	parts, err := w.s.UpgradeSnapshot(Format, maxPart)
	if err != nil {
		t.Fatal(err)
	}
	return w.appendParts(t, parts)
}

func (w *writer) appendParts(t testing.TB, parts []SnapshotPart) error {
	t.Helper()
	first := w.s.Seq + 1
	for i, p := range parts {
		if i > 0 {
			p.Body.First = first
		}
		if err := w.append(t, p.Body, p.Data); err != nil {
			return err
		}
	}
	return nil
}
