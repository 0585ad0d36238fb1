package ledger

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// usual is a short stream with an entry of nearly each kind.
func usual(t testing.TB) *stream {
	t.Helper()
	s := newStream(t)
	s.claim(1)
	for n := range 3 {
		e := event("a", 100+n, transform.ClassTTL, 0)
		s.store(Record{Event: e})
	}
	hour := layout.HourOf(hour0.Time())
	_, i := s.object(PartKey{Class: transform.ClassTTL, Hour: hour}, s.first)
	s.append(i, nil)
	s.append(&Done{Name: i.Name, Bytes: 7, SHA256: "00"}, nil)
	s.append(&Subject{Seq: s.state.Seq}, nil)
	s.append(&ColumnsAdded{Columns: map[string]Column{"n": {Path: []string{"n"}, Type: "int64"}}}, nil)
	s.append(&Placed{Place: "gs://b/p"}, nil)
	s.append(&ManifestWritten{Head: manifest.Head{N: 1, Hash: "00"}, Closed: hour + 1, Named: []string{i.Name}}, nil)
	return s
}

// FuzzApply: whatever is published as an archive's next entry, the fold takes it or refuses it, the
// events of its blocks are within its data, and the state that it takes is stored again as the same
// state.
func FuzzApply(f *testing.F) {
	s := usual(f)
	for _, msg := range s.msgs {
		e, err := Decode(msg)
		if err != nil {
			f.Fatal(err)
		}
		body, err := json.Marshal(e.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(e.Kind), body, e.Data)
	}
	for _, odd := range []string{
		`{"groups":[{"at":9223372036854775807,"bytes":1}]}`, `{"groups":[{"at":-1,"bytes":1,"cover":null}]}`, `null`,
		`{"groups":[{"cover":{"a":[["1","2"],["1","9"]]}}],"shards":{"a":{"from":null}},"counts":{"1":{}}}`,
	} {
		f.Add(byte(KindEvents), []byte(odd), []byte("x"))
	}
	whole, err := s.state.SnapshotParts(1 << 20)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind byte, body, data []byte) {
		first, err := Encode(&Snapshot{Parts: 1}, s.state.Hash, whole[0])
		if err != nil {
			t.Fatal(err)
		}
		again, err := Restore(s.state.Seq+1, [][]byte{first})
		if err != nil {
			t.Fatal(err)
		}
		msg := append(slices.Clone(magic), Format, kind)
		msg = append(msg, again.Hash[:]...)
		msg = append(append(binary.AppendUvarint(msg, uint64(len(body))), body...), data...)
		e, err := again.Apply(again.Seq+1, msg)
		if err != nil {
			return
		}
		err = e.Each("", 0, func(x *transform.Event) error {
			if n := len(x.Item) + len(x.Subject) + len(x.ID()); n > 1000*(len(data)+1) {
				t.Errorf("an event of %d bytes in %d", n, len(data))
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrBlock) {
			t.Error(err)
		}
		storedAsItIs(t, again)
	})
}

// FuzzRestore: no text of a snapshot makes Restore panic, and what it takes is stored again as the
// same state, which takes the next entry.
func FuzzRestore(f *testing.F) {
	s := usual(f)
	text, err := json.Marshal(s.state)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, odd := range []string{
		`null`, `{}`, `{"shards":null,"parts":null,"counts":null,"covered":null,"covered_at":null}`,
		`{"covered":{"ttl":null}}`, `{"parts":{"ttl/2026-05-04T23":{}}}`, `{"subject":0}`,
	} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		msg, err := Encode(&Snapshot{Parts: 1}, Hash{}, s2.Encode(nil, text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Restore(7, [][]byte{msg})
		if err != nil {
			return
		}
		storedAsItIs(t, s)
		e := event("a", 5, transform.ClassTTL, 1)
		next := &stream{t: t, first: s.Seq + 1, state: s}
		next.claim(math.MaxUint64)
		next.store(Record{Event: e})
	})
}

// FuzzDecode: no message makes the reader of entries panic, and what it takes is written again as
// it is.
func FuzzDecode(f *testing.F) {
	for _, msg := range usual(f).msgs {
		f.Add(msg)
	}
	f.Add([]byte("TRA\x01"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		e, err := Decode(msg)
		if err != nil {
			return
		}
		again, err := Encode(e.Body, e.Prev, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		same, err := Decode(again)
		if err != nil || !cmp.Equal(e.Data, same.Data) {
			t.Fatalf("%q became %q, %v", msg, again, err)
		}
		if third, err := Encode(same.Body, same.Prev, same.Data); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%q became %q, %v", again, third, err)
		}
	})
}

// storedAsItIs asserts that a state is stored and read again as it is.
func storedAsItIs(t *testing.T, s *State) {
	t.Helper()
	a, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := json.Unmarshal(a, again); err != nil {
		t.Fatalf("%s is refused: %v", a, err)
	}
	if b, err := json.Marshal(again); err != nil || !bytes.Equal(a, b) {
		t.Fatalf("stored again, %v: %s", err, cmp.Diff(string(a), string(b)))
	}
}
