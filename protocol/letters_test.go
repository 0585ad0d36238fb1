package protocol

import (
	"fmt"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestLettersFollowAReading: states are letters of the alphabet, - is the absent item, and each
// pair is a dead letter.
func TestLettersFollowAReading(t *testing.T) {
	for _, tt := range []struct {
		read    string
		letters []string // old and new state
		want    Follow
	}{
		{"a", nil, FollowNot},
		{"b", []string{"ab"}, FollowMet},
		{"a", []string{"ab"}, FollowReading},
		{"b", []string{"ab", "bc", "cd"}, FollowReading},
		{"d", []string{"ab", "bc", "cd"}, FollowMet},
		{"x", []string{"ab", "bc", "cd"}, FollowNot},
		// The change from b to c was dropped by hand.
		{"c", []string{"ab", "cd"}, FollowReading},
		{"a", []string{"ab", "cd"}, FollowNot},
		{"b", []string{"ab", "cd"}, FollowNot},
		{"d", []string{"ab", "cd"}, FollowMet},
		// The newest change was dropped by hand: its image was read.
		{"c", []string{"ab"}, FollowNot},
		// The state was there before: the last one counts.
		{"a", []string{"ab", "ba", "ac"}, FollowReading},
		{"a", []string{"ab", "ba"}, FollowMet},
		// Inserted and removed.
		{"-", []string{"-a"}, FollowReading},
		{"-", []string{"a-"}, FollowMet},
		{"-", []string{"ab"}, FollowNot},
		{"a", []string{"ab", "b-", "-c"}, FollowReading},
	} {
		var all []*change.Change
		for _, s := range tt.letters {
			all = append(all, changeOf(s[:1], s[1:]))
		}
		if got := FollowOf(imageOf(tt.read), all); got != tt.want {
			t.Errorf("%s read, letters %v: %d, want %d", tt.read, tt.letters, got, tt.want)
		}
	}
}

// TestLettersWithoutImagesFollowNothing: an absent old image is that of an insert alone, an absent
// new one that of a removal alone.
func TestLettersWithoutImagesFollowNothing(t *testing.T) {
	c := &change.Change{Op: change.Modify, New: imageOf("b")}
	if got := FollowOf(nil, []*change.Change{c}); got != FollowNot {
		t.Errorf("%d", got)
	}
	if got := FollowOf(imageOf("b"), []*change.Change{c}); got != FollowNot {
		t.Errorf("%d", got)
	}
	c = &change.Change{Op: change.Modify, Old: imageOf("a")}
	for _, read := range []string{"-", "a"} {
		if got := FollowOf(imageOf(read), []*change.Change{c}); got != FollowNot {
			t.Errorf("%s read, and a change without a new image: %d", read, got)
		}
	}
}

// TestSameImageInAnyOrder of attributes and of elements of sets, at any depth; lists have an order.
func TestSameImageInAnyOrder(t *testing.T) {
	const a = `{"s":{"SS":["x","y"]},"m":{"M":{"n":{"NS":["1","2"]}}},"l":{"L":[{"BS":["eA==","eQ=="]},{"N":"1"}]}}`
	for b, want := range map[string]bool{
		`{"m":{"M":{"n":{"NS":["2","1"]}}},"l":{"L":[{"BS":["eQ==","eA=="]},{"N":"1"}]},"s":{"SS":["y","x"]}}`: true,
		`{"m":{"M":{"n":{"NS":["2","1"]}}},"l":{"L":[{"N":"1"},{"BS":["eQ==","eA=="]}]},"s":{"SS":["y","x"]}}`: false,
		`{"m":{"M":{"n":{"NS":["2","3"]}}},"l":{"L":[{"BS":["eQ==","eA=="]},{"N":"1"}]},"s":{"SS":["y","x"]}}`: false,
		`{"s":{"SS":["x","y"]}}`: false,
	} {
		if SameImage([]byte(a), []byte(b)) != want {
			t.Errorf("%s: want %v", b, want)
		}
	}
	if SameImage(nil, []byte(a)) || SameImage([]byte(a), nil) || !SameImage(nil, nil) {
		t.Error("an absent item is equal to another absent one alone")
	}
}

func imageOf(state string) []byte {
	if state == "-" {
		return nil
	}
	return fmt.Appendf(nil, `{"pk":{"S":"p"},"v":{"S":%q}}`, state)
}

func changeOf(from, to string) *change.Change {
	c := &change.Change{Op: change.Modify, Old: imageOf(from), New: imageOf(to)}
	switch {
	case c.Old == nil:
		c.Op = change.Insert
	case c.New == nil:
		c.Op = change.Remove
	}
	return c
}

// TestLettersAreNotAppliedOverAPutThatMayBeInTheRows: what an attempt without an answer has written
// looks like a later change to the next attempt. The letters before the reading would take it back.
func TestLettersAreNotAppliedOverAPutThatMayBeInTheRows(t *testing.T) {
	for name, c := range map[string]struct {
		put    Put
		follow Follow
		want   CatchUp
	}{
		"written":                        {Put{Written: 2}, FollowReading, LettersTogether},
		"held already":                   {Put{Equal: 1}, FollowMet, LettersTogether},
		"written, other letters":         {Put{Written: 2}, FollowNot, LettersStay},
		"skipped":                        {Put{Skipped: 2}, FollowReading, LettersApart},
		"skipped, other letters":         {Put{Skipped: 1}, FollowNot, LettersApart},
		"skipped in some rows":           {Put{Written: 1, Skipped: 1}, FollowReading, LettersStay},
		"skipped, held in others":        {Put{Equal: 1, Skipped: 1}, FollowReading, LettersStay},
		"skipped at its own version":     {Put{Skipped: 1, Again: 1}, FollowReading, LettersStay},
		"skipped at its own in some":     {Put{Skipped: 2, Again: 1}, FollowReading, LettersStay},
		"no rows, and what follows it":   {Put{}, FollowReading, LettersTogether},
		"no rows, and what does not":     {Put{}, FollowNot, LettersStay},
		"written in all but its own one": {Put{Written: 1, Skipped: 1, Again: 1}, FollowReading, LettersStay},
	} {
		if how := CatchUpOf(c.put, c.follow); how != c.want {
			t.Errorf("%s: %d, want %d", name, how, c.want)
		}
	}
}
