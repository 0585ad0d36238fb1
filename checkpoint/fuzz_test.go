package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

// FuzzEntry: whatever is published into a log, nothing crashes, and what decodes encodes again to
// the same.
func FuzzEntry(f *testing.F) {
	for i := range 60 {
		f.Add(encode(f, genEntry().Example(i)))
	}
	for _, msg := range oneOfEachKind(f) {
		f.Add(msg)
	}
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		s := NewState()
		s.Epoch = 1
		_, _ = s.Apply(1, msg)
		_, _ = Restore(1, [][]byte{msg})
		e, err := Decode(msg)
		if err != nil {
			return
		}
		again, err := Decode(encode(t, e))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(e)
		b, _ := json.Marshal(again)
		if !bytes.Equal(a, b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

// oneOfEachKind returns an entry of each kind out of the log of each format.
func oneOfEachKind(t testing.TB) (all [][]byte) {
	t.Helper()
	for format := 1; format <= newestFormat; format++ {
		kinds := map[Kind]bool{}
		for _, msg := range slices.Backward(goldenLog(t, format).msgs) {
			if e, err := Decode(msg); err == nil && !kinds[e.Kind] {
				kinds[e.Kind] = true
				all = append(all, msg)
			}
		}
	}
	return all
}

// FuzzState: no text makes the reader of stored states panic, and a state that it takes is stored
// again as the same state, with the same answers.
func FuzzState(f *testing.F) {
	for format := 1; format <= newestFormat; format++ {
		text, err := os.ReadFile(fmt.Sprintf("testdata/format%d.state.json", format))
		if err != nil {
			f.Fatal(err)
		}
		var small bytes.Buffer
		if err := json.Compact(&small, text); err != nil {
			f.Fatal(err)
		}
		f.Add(small.Bytes())
	}
	for i, x := range readEarlierStates(f) {
		if i%4 == 0 {
			f.Add([]byte(x.State))
		}
	}
	for _, part := range []string{
		`"streams":[null]`, `"halts":{"x":null}`, `"copy":{"parts":2}`, `"starting":{"parts":3}`, `"gaps":[{"waived":{}}]`,
		`"expired":{"hours":{"-1":2}}`, `"shards":{"a":{"id":"a","stream":"s","phase":"open","parent":"a"}}`,
	} {
		f.Add([]byte(`{"epoch":1,"nonce":"0000000000000000",` + part + `}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := decodeState(text); err == nil {
			storedAsItIs(t, s)
		}
	})
}

// FuzzSnapshot: no data of a snapshot's parts makes Restore panic, or use memory beyond what such
// data can hold.
func FuzzSnapshot(f *testing.F) {
	for format := 1; format <= newestFormat; format++ {
		parts, err := goldenLog(f, format).restored(f).Snapshot(1 << 20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(parts[0].Data)
	}
	f.Add(append([]byte{1}, s2.Encode(nil, []byte(`{"shards":{}}`))...))
	f.Add(binary.AppendUvarint([]byte{1}, 1<<32-1)) // says that it holds 4 GiB
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decodeSnapshot(data); err == nil {
			storedAsItIs(t, s)
		}
	})
}

// FuzzFold: whatever an owner appends to a log of any format, the fold takes it or refuses it, and
// the state that it takes is stored again as the same state.
func FuzzFold(f *testing.F) {
	states := map[int]*State{}
	for format := 1; format <= newestFormat; format++ {
		states[format] = goldenLog(f, format).restored(f)
	}
	for _, msg := range oneOfEachKind(f) {
		e, err := Decode(msg)
		if err != nil {
			f.Fatal(err)
		}
		body, err := json.Marshal(e.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(0), byte(e.Kind), body)
	}
	f.Fuzz(func(t *testing.T, format, kind byte, body []byte) {
		was := states[int(format)%newestFormat+1]
		text, err := encodeState(was)
		if err != nil {
			t.Fatal(err)
		}
		s, err := decodeState(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Chain, s.Format = was.Chain, was.Format
		e := &Entry{Kind: Kind(kind), Epoch: s.Epoch, Nonce: s.Nonce, Prev: s.Hash, Body: newBody(Kind(kind))}
		if e.Body == nil || json.Unmarshal(body, e.Body) != nil {
			return
		}
		if e.Kind == KindClaim {
			e.Epoch++
		}
		if _, err := s.Apply(s.Seq+1, encode(t, e)); err == nil {
			storedAsItIs(t, s)
		}
	})
}

// storedAsItIs asserts that a state is stored and read again as it is.
func storedAsItIs(t *testing.T, s *State) {
	t.Helper()
	a, err := encodeState(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeState(a)
	if err != nil {
		t.Fatalf("%s is refused: %v", a, err)
	}
	b, err := encodeState(again)
	if err != nil || !bytes.Equal(a, b) {
		t.Fatalf("stored again, %v: %s", err, cmp.Diff(string(a), string(b)))
	}
	if d := cmp.Diff(replies(s), replies(again)); d != "" {
		t.Fatalf("%s answers otherwise: %s", a, d)
	}
}

// replies returns what a state says of itself.
func replies(s *State) (all []any) {
	open, closed, waiting, done := s.ShardCounts()
	all = append(all, open, closed, waiting, done, s.ReadWatermark(), s.AppliedWatermark(), s.ProvenWatermark(),
		s.HighestVersion(), s.TopClock(), s.LowMark(), s.MissingParents(), s.GappedShards(), s.AwaitsChildren(),
		s.OpenGaps(), s.DiffersSince(), s.CopyPending(), s.CopyRunning() != nil, len(s.AllHalts()), s.StandsAtFence())
	for _, id := range slices.Sorted(maps.Keys(s.Shards)) {
		all = append(all, s.Readable(s.Shards[id]), s.CompleteUntil(s.Shards[id]))
	}
	if live := s.LiveStream(); live != nil {
		all = append(all, live.ARN, s.Drained(live.ARN), s.LifeOf(live.ARN), len(s.Lives()))
	}
	if s.Copy != nil {
		all = append(all, s.Copy.Total())
	}
	sink, entries := s.Unapplied()
	all = append(all, sink, entries)
	for i := range s.Gaps {
		g := &s.Gaps[i]
		all = append(all, g.ID(), s.DifferingSinks(g), s.GapStart(g), s.LostBetween(g), s.BigtableDiffers(g))
	}
	return all
}
