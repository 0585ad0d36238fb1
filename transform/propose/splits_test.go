package propose

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSplitsDivideTheSampleEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 6), 0, 400).Draw(t, "rows")
		parts := rapid.IntRange(1, 20).Draw(t, "parts")
		splits := Splits(rows, parts)
		if !slices.IsSortedFunc(splits, bytes.Compare) {
			t.Fatalf("splits are not in order: %q", splits)
		}
		slices.SortFunc(rows, bytes.Compare)
		rows = slices.CompactFunc(rows, bytes.Equal)
		if want := max(min(parts, len(rows)/10)-1, 0); len(splits) != want {
			t.Fatalf("%d splits of %d rows into %d parts, want %d", len(splits), len(rows), parts, want)
		}
		if len(splits) == 0 {
			return
		}
		for i, part := range append(slices.Clone(splits), nil) {
			n := len(rows)
			if part != nil {
				n, _ = slices.BinarySearchFunc(rows, part, bytes.Compare)
			}
			if n < 10 {
				t.Fatalf("part %d has %d rows", i, n)
			}
			rows = rows[n:]
		}
	})
}

func TestSplitsShowNoMoreOfAKeyThanTheyMust(t *testing.T) {
	var rows [][]byte
	for i := range 40 {
		rows = append(rows, fmt.Appendf(nil, "%c%c-the-rest-of-the-key", 'ä'+rune(i/20), 'ö'+rune(i%20)))
	}
	got := Splits(rows, 4)
	want := [][]byte{[]byte("ä\u0100"), []byte("å"), []byte("å\u0100")}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("splits %q, want %q", got, want)
	}
	for _, s := range got {
		if !utf8.Valid(s) {
			t.Errorf("split %q ends inside of a character", s)
		}
	}
}

func TestPartsFollowTheSizeOfTheSource(t *testing.T) {
	for bytes, want := range map[int64]int{0: 10, 5 << 30: 10, 42 << 30: 42, 1 << 50: 100} {
		if got := Parts(bytes); got != want {
			t.Errorf("%d parts for %d bytes, want %d", got, bytes, want)
		}
	}
}
