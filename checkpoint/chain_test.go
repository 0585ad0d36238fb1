package checkpoint

import (
	"errors"
	"testing"
)

// TestChainAcceptsOneWriter: Rule 2, for a log that was read from its start and for a reader that
// begins behind a mark.
func TestChainAcceptsOneWriter(t *testing.T) {
	newest := Hash{1}
	owner := Entry{Epoch: 5, Nonce: Nonce{5}, Prev: newest}
	with := func(change func(*Entry)) *Entry {
		e := owner
		e.Kind, e.Body = KindBeat, &Beat{}
		change(&e)
		return &e
	}
	claim := func(e *Entry) { e.Kind, e.Body, e.Epoch, e.Nonce = KindClaim, &Claim{}, 6, Nonce{6} }
	known := Chain{Hash: newest, Format: 1, Epoch: 5, Nonce: Nonce{5}}
	released := known
	released.Released = true
	for _, c := range []struct {
		name                             string
		e                                *Entry
		known, released, behind, nowhere bool // whether each of the four chains accepts it
	}{
		{"the owner", with(func(*Entry) {}), true, false, true, true},
		{"the owner, behind another entry", with(func(e *Entry) { e.Prev = Hash{2} }), false, false, false, true},
		{"another nonce", with(func(e *Entry) { e.Nonce = Nonce{6} }), false, false, true, true},
		{"an older epoch", with(func(e *Entry) { e.Epoch = 4 }), false, false, true, true},
		{"the next claim", with(claim), true, true, true, true},
		{"a claim that skips an epoch", with(func(e *Entry) { claim(e); e.Epoch = 7 }), false, false, true, true},
		{"a claim of the same epoch", with(func(e *Entry) { claim(e); e.Epoch = 5 }), false, false, true, true},
		{"a control entry of anyone", with(func(e *Entry) { e.Kind, e.Body, e.Nonce = KindControl, &Control{}, Nonce{9} }),
			true, true, true, true},
	} {
		for name, one := range map[string]struct {
			chain Chain
			want  bool
		}{
			"known": {known, c.known}, "released": {released, c.released},
			"behind a mark": {ChainAfter(newest), c.behind}, "nowhere": {ChainAfter(Hash{}), c.nowhere},
		} {
			before, msg := one.chain, []byte("message")
			got, err := one.chain.Accept(c.e, msg)
			if got != one.want || err != nil {
				t.Errorf("%s, chain %s: accepted %v, %v", c.name, name, got, err)
			}
			if !got && one.chain != before || got && (one.chain.Hash != HashOf(msg) || !one.chain.Known()) {
				t.Errorf("%s, chain %s: %+v after %+v", c.name, name, one.chain, before)
			}
		}
	}
}

// A reader learns the owner from the first entry that it meets, and holds later ones to it.
func TestChainLearnsItsOwner(t *testing.T) {
	c, last := ChainAfter(Hash{1}), Hash{1}
	for i, step := range []struct {
		kind  Kind
		body  any
		epoch uint64
		nonce byte
		want  bool
	}{
		{KindControl, &Control{}, 9, 9, true}, // says nothing about the owner
		{KindMarks, &Marks{}, 3, 3, true},
		{KindBeat, &Beat{}, 9, 9, false},
		{KindBeat, &Beat{}, 3, 3, true},
		{KindRelease, &Release{}, 3, 3, true},
		{KindBeat, &Beat{}, 3, 3, false},
		{KindClaim, &Claim{}, 4, 4, true},
		{KindBeat, &Beat{}, 3, 3, false},
		{KindBeat, &Beat{}, 4, 4, true},
	} {
		e := &Entry{Kind: step.kind, Epoch: step.epoch, Nonce: Nonce{step.nonce}, Prev: last, Body: step.body}
		msg, err := Encode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Accept(e, msg); got != step.want || err != nil {
			t.Errorf("step %d, a %s: accepted %v, %v", i, step.kind, got, err)
		}
		last = c.Hash
	}
}

// Only the fold knows the format of a log; to it, an entry above that format is a contradiction.
func TestChainHoldsEntriesToTheFormat(t *testing.T) {
	newer(t)
	beat := &Entry{Kind: KindBeat, Epoch: 1, Prev: Hash{1}, Body: &Beat{Invented: true}}
	c := Chain{Hash: Hash{1}, Format: 1, Epoch: 1}
	if ok, err := c.Accept(beat, nil); !ok || !errors.As(err, new(*FormatError)) {
		t.Errorf("format 2 in a log of format 1: %v, %v", ok, err)
	}
	c = ChainAfter(Hash{1})
	if ok, err := c.Accept(beat, nil); !ok || err != nil {
		t.Errorf("to a reader: %v, %v", ok, err)
	}
}

// TestPredecessorOfASnapshot: Rule 2. Messages of other programs may lie between an entry and its
// predecessor, and an old snapshot that was stored again has the next entry of its own chain before
// it.
func TestPredecessorOfASnapshot(t *testing.T) {
	l := &memLog{}
	w, err := claim(t, l, NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Shards: seen("a")}, &Beat{Date: 1}, &Beat{Date: 2})
	msgs := map[uint64][]byte{5: []byte("hello"), 6: []byte("hello")}
	for i, m := range l.msgs {
		msgs[uint64(i+1)] = m
	}
	fetch := func(seq uint64) ([]byte, error) { return msgs[seq], nil }
	at := func(seq uint64) *Chain {
		s := NewState()
		for i := range seq {
			if _, err := s.Apply(i+1, l.msgs[i]); err != nil {
				t.Fatal(err)
			}
		}
		return &s.Chain
	}
	for name, c := range map[string]struct {
		first, before uint64
		chain         *Chain
		want          bool
	}{
		"right before it":           {1, 5, at(4), true},
		"behind foreign messages":   {1, 7, at(4), true},
		"trimmed":                   {5, 7, at(4), true},
		"an old one again":          {1, 5, at(2), false},
		"an old one behind another": {1, 7, at(3), false},
		"another chain":             {1, 5, &Chain{Hash: Hash{1}}, false},
	} {
		if ok, err := Predecessor(c.first, c.before, c.chain.Hash, c.chain, fetch); ok != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	broken := errors.New("no answer")
	_, err = Predecessor(1, 5, Hash{}, nil, func(uint64) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestOnlyWhatNobodyNeedsIsTrimmed: below the marks, the last snapshot, the caller's needs and an
// acknowledged append.
func TestOnlyWhatNobodyNeedsIsTrimmed(t *testing.T) {
	s := NewState()
	s.SnapshotFirst, s.Marks = 20, map[string]Mark{SinkBigtable: {Seq: 14}, "archive": {Seq: 11}}
	for name, c := range map[string]struct{ first, free, acked, want uint64 }{
		"up to the lowest mark":          {1, 100, 30, 12},
		"up to what the caller needs":    {1, 8, 30, 8},
		"nothing is acknowledged":        {1, 100, 0, 0},
		"acknowledged further back":      {1, 100, 12, 0},
		"it begins there already":        {12, 100, 30, 0},
		"it begins behind that, trimmed": {15, 100, 30, 0},
	} {
		if below := s.TrimBelow(c.first, c.free, c.acked); below != c.want {
			t.Errorf("%s: below %d, want %d", name, below, c.want)
		}
	}
	if s.Marks = nil; s.TrimBelow(1, 100, 30) != 20 {
		t.Error("a log without sinks is not trimmed up to its snapshot")
	}
}
