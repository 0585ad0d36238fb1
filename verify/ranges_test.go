package verify

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// inRanges compares as workers do: the records of all items go to the ranges of their rows, each
// twice, and each range is compared alone. It returns what the ranges have written.
func (e *engine) inRanges(splits ...string) (written [][]byte) {
	e.t.Helper()
	bounds := append(append([]string{""}, splits...), "")
	records := make([][]Record, len(splits)+1)
	counts := Counts{}
	p := NewProjection(e.allTables())
	for part := range e.parts {
		for after, done := "", false; !done; {
			page, err := e.page(e.t.Context(), part, after)
			if err != nil {
				e.t.Fatal(err)
			}
			refused := int64(0)
			for _, raw := range page.Items {
				isRefused, err := p.Records(0, raw, func(r Record) {
					at := 0
					for at < len(splits) && string(r.Row) >= splits[at] {
						at++
					}
					for range 2 {
						records[at] = append(records[at], Record{
							Row: bytes.Clone(r.Row), Name: bytes.Clone(r.Name), Value: bytes.Clone(r.Value),
						})
					}
				})
				if err != nil {
					e.t.Fatal(err)
				}
				if isRefused {
					refused++
				}
			}
			counts.Counted(int64(len(page.Items)), refused, page.Answered)
			after, done = page.After, page.Done
		}
	}
	for i := range records {
		o := e.options()
		o.Dir, o.Memory = filepath.Join(e.t.TempDir(), fmt.Sprint("range", i)), 256
		f, err := CompareRange(e.t.Context(), o, e.allTables(), e.bigtable().Range(bounds[i], bounds[i+1]),
			func(add func(Record) error) error {
				var all error
				for _, r := range records[i] {
					all = errors.Join(all, add(r))
				}
				return all
			})
		if err != nil {
			e.t.Fatal(err)
		}
		if i == 0 {
			f.Counts.Counted(counts.Items, counts.Refused, counts.Answered)
			f.ByTable[0].Counted(counts.Items, counts.Refused, counts.Answered)
		}
		var text bytes.Buffer
		if err := errors.Join(f.Encode(&text), f.Remove()); err != nil {
			e.t.Fatal(err)
		}
		written = append(written, text.Bytes())
	}
	return written
}

// joined joins what ranges have written.
func (e *engine) joined(written ...[]byte) (*Findings, error) {
	e.t.Helper()
	o := e.options()
	o.Dir = filepath.Join(e.t.TempDir(), "joined")
	j, err := Join(o, e.allTables(), e.bigtable())
	if err != nil {
		e.t.Fatal(err)
	}
	for _, text := range written {
		if err := j.Add(bytes.NewReader(text)); err != nil {
			return nil, errors.Join(err, j.Close())
		}
	}
	return j.End()
}

// TestRangesFindWhatOneComparisonFinds: each planted difference, in one process and in ranges that
// split the rows before, behind and beside it.
func TestRangesFindWhatOneComparisonFinds(t *testing.T) {
	for _, p := range plants {
		e := newEngine(t, moves)
		for _, sk := range []string{"a", "b"} {
			e.put("p", sk, someText)
		}
		p.do(e)
		whole := e.full(e.options())
		f, err := e.joined(e.inRanges("by#t#p#b", "p")...)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		times := cmpopts.IgnoreFields(Counts{}, "Began", "Answered")
		if diff := cmp.Diff(whole.Counts, f.Counts, times); diff != "" {
			t.Errorf("%s: counts (-one process +ranges):\n%s", p.name, diff)
		}
		if diff := cmp.Diff(whole.ByTable, f.ByTable, times); diff != "" {
			t.Errorf("%s: counts by table (-one process +ranges):\n%s", p.name, diff)
		}
		if diff := cmp.Diff(candidates(t, whole), candidates(t, f)); diff != "" {
			t.Errorf("%s: candidates (-one process +ranges):\n%s", p.name, diff)
		}
		if diff := cmp.Diff([]string{p.want}, e.judged(f, p.rows)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.name, diff)
		}
	}
}

// TestJoinNeedsNoRoomForTheTables: workers sort them, in ranges, because no machine has the room.
func TestJoinNeedsNoRoomForTheTables(t *testing.T) {
	e := newEngine(t, moves)
	tables := e.allTables()
	tables[0].Parts, tables[0].Items, tables[0].Bytes = 1, 1<<50, 1<<57
	if _, err := Full(t.Context(), e.options(), tables, e.bigtable()); !errors.As(err, new(*extsort.NoRoomError)) {
		t.Fatalf("in one process: %v", err)
	}
	j, err := Join(e.options(), tables, e.bigtable())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Rule 15: findings that are cut off anywhere, or lack a line, are no findings.
func TestFindingsThatAreCutOffAreRefused(t *testing.T) {
	e := newEngine(t, moves)
	for _, sk := range []string{"a", "b", "c"} {
		e.put("p", sk, someText)
		e.wipe("by#t#p#" + sk)
	}
	e.foreign("nobody's", "d", "x", "1")
	text := e.inRanges()[0]
	if _, err := e.joined(text); err != nil {
		t.Fatal(err)
	}
	for n := range len(text) - 1 { // without its newline the last line is whole
		if _, err := e.joined(text[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken for all", n, len(text))
		}
	}
	for _, more := range []string{"x", string(text)} {
		if _, err := e.joined(append(bytes.Clone(text), more...)); err == nil {
			t.Errorf("%.10q behind their end is left out", more)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i := range lines[:len(lines)-1] {
		rest := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
		if _, err := e.joined([]byte(rest)); err == nil {
			t.Errorf("without line %d they are taken for all", i)
		}
	}
}
