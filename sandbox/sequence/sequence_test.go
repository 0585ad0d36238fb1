package sequence_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

func value(t *rapid.T, text string) *big.Int {
	v, ok := new(big.Int).SetString(text, 10)
	if !ok || len(text) < 21 || len(text) > 40 || text[0] == '0' {
		t.Fatalf("not a sequence number: %q", text)
	}
	return v
}

func TestNumbersKeepTheOrderOfPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sequence.New(rapid.IntRange(0, 50).Draw(t, "digits"), rapid.Uint64().Draw(t, "below"))
		positions := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64Range(0, 9),
			func(d uint64) uint64 { return max(s.Below, 5) + d - 5 }))
		a, b := positions.Draw(t, "a"), positions.Draw(t, "b")
		x, y := value(t, s.Text(a)), value(t, s.Text(b))
		if got, want := x.Cmp(y), cmpUint(a, b); got != want {
			t.Errorf("%v and %v compare %d, positions %d", x, y, got, want)
		}
		if back, ok := s.Parse(s.Text(a)); !ok || back != a {
			t.Errorf("position %d came back as %d", a, back)
		}
	})
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestStrangeNumbersFallBetweenPositions(t *testing.T) {
	s := sequence.New(21, 100)
	for text, want := range map[string]uint64{
		"100000000000000000000":   0,         // below the first
		"1000000000000000000000":  100,       // the power of ten itself
		"2000000000000000000000":  1<<64 - 1, // above the last
		"99999999999999999999999": 1<<64 - 1,
	} {
		if got, ok := s.Parse(text); !ok || got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "1", "99999999999999999999", "99999999999999999999x"} {
		if _, ok := s.Parse(text); ok {
			t.Errorf("%q is accepted as a sequence number", text)
		}
	}
}
