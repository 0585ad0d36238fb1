package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// Follow is how the changes of an item's dead letters follow a reading of the item.
type Follow uint8

// The answers.
const (
	// FollowNot: a change between the reading and the newest letter is not among the letters, so a
	// difference from what was read cannot be made.
	FollowNot Follow = iota
	// FollowReading: one of the letters changed what was read, and each later one changed what the
	// one before it made.
	FollowReading
	// FollowMet: what was read is what the newest letter made.
	FollowMet
)

// FollowOf judges the letters of one item, in version order, against a reading of it (Rule 14).
// read is the item as typed JSON, nil where the table does not hold it. The caller has put what was
// read into the rows of the item, below the versions of the letters, and no change of the item is
// unknown: what is in the log up to now is applied, or among the letters.
//
// Versions do not show which letters the reading includes: they come from creation times, which are
// cut to seconds, so a change made after the reading may have a version up to the reading's. The
// images show it. Two states of an item may be equal; the last one counts. If it was an earlier one
// that was read, the letters in between are skipped, and lead back to the same state.
//
// Unless the answer is FollowNot, writing the newest letter's image over what was read, at that
// letter's version, makes the rows true as of that letter, and the next change of the item, which
// is a difference from that image, can be applied.
func FollowOf(read []byte, letters []*change.Change) Follow {
	if slices.ContainsFunc(letters, lacksImages) || len(letters) == 0 {
		return FollowNot
	}
	if SameImage(letters[len(letters)-1].New, read) {
		return FollowMet
	}
	for i, c := range slices.Backward(letters) {
		if SameImage(c.Old, read) {
			return FollowReading
		}
		if i > 0 && !SameImage(letters[i-1].New, c.Old) {
			break
		}
	}
	return FollowNot
}

// Put counts the rows of an item by what became of them when what was read was put into them.
type Put struct {
	Written int
	Equal   int // they held what was read
	Skipped int // they hold the item at the put's version or a later one
	// Again counts the rows in Skipped at exactly the put's version: an attempt of the put that was
	// not answered may have written them.
	Again int
}

// CatchUp is how the dead letters above a put are applied behind it.
type CatchUp uint8

// The answers.
const (
	LettersStay     CatchUp = iota // until another reading: the rows hold different states
	LettersTogether                // as one write over what was read
	LettersApart                   // one by one over what the first one changed
)

// CatchUpOf judges how the letters above a put are applied, follow being how they follow what was
// read (Rule 14).
//
// If every row was skipped because of a later change, no put has been in the rows since: they hold
// what the first letter changed. A row that holds the put's own version may hold what was read, so
// that an earlier letter would take it back.
func CatchUpOf(p Put, follow Follow) CatchUp {
	switch {
	case p.Skipped == 0 && follow != FollowNot:
		return LettersTogether
	case p.Skipped > 0 && p.Written+p.Equal+p.Again == 0:
		return LettersApart
	}
	return LettersStay
}

// lacksImages reports whether a change lacks an image that its operation has: the stream may have
// another view type than new and old images.
func lacksImages(c *change.Change) bool {
	return (c.Old == nil) != (c.Op == change.Insert) || (c.New == nil) != (c.Op == change.Remove)
}

// SameImage reports whether two images of an item, as typed JSON, are equal or both absent. The
// order of attributes and the order of the elements of sets do not matter.
func SameImage(a, b []byte) bool {
	if a == nil || b == nil || bytes.Equal(a, b) {
		return (a == nil) == (b == nil)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(sorted(x), sorted(y))
}

// sorted sorts the elements of all sets in typed JSON.
func sorted(v any) any {
	m, ok := v.(map[string]any)
	if list, is := v.([]any); is {
		for _, e := range list {
			sorted(e)
		}
	}
	if !ok {
		return v
	}
	for name, e := range m {
		set, is := e.([]any)
		if is && len(m) == 1 && (name == "SS" || name == "NS" || name == "BS") {
			slices.SortFunc(set, func(a, b any) int {
				s, _ := a.(string)
				t, _ := b.(string)
				return bytes.Compare([]byte(s), []byte(t))
			})
			continue
		}
		sorted(e)
	}
	return v
}
