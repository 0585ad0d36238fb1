package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	table = "Sessions"
	hour0 = layout.Hour(490_008) // 2025-11-25T00
)

// shelf is an archive in a directory. Its objects are their Content as JSON.
type shelf struct {
	t     *testing.T
	dir   string
	b     bucket.Bucket
	head  Head
	entry uint64
}

// readJSON reads the objects of a shelf.
func readJSON(_ context.Context, r io.ReaderAt, size int64, _ bool) (*Content, error) {
	c := new(Content)
	return c, json.NewDecoder(io.NewSectionReader(r, 0, size)).Decode(c)
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t, dir: t.TempDir()}
	b, err := bucket.Open(t.Context(), "file://"+s.dir, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	s.b = b
	return s
}

// put writes a file of the archive, behind the bucket's back: creating it there waits for the disk.
func (s *shelf) put(name string, data []byte) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// object creates an object with the records after from, up to to, of a shard: one event for each
// number.
func (s *shelf) object(class transform.EventClass, h layout.Hour, shard string, from, to int) Object {
	s.t.Helper()
	s.entry++
	part := layout.Part{Table: table, Class: class, Hour: h}
	c := Content{Part: part, Events: int64(to - from), Digest: strconv.Itoa(to), Coverage: coverage.Set{
		coverage.Key("label", shard): {{From: number(from), To: number(to), First: from == 0}},
	}}
	data, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	o := Object{Name: part.Object(s.entry, s.entry, hex.EncodeToString(sum[:]), "jsonl.zst"), Bytes: int64(len(data)),
		SHA256: hex.EncodeToString(sum[:]), Events: c.Events, Digest: c.Digest}
	s.put(o.Name, data)
	return o
}

func number(n int) change.SequenceNumber { return change.SequenceNumber(strconv.Itoa(1000 + n)) }

// closed is an hour of deletions by TTL whose numbers add up.
func closed(h layout.Hour, objects ...Object) Hour {
	x := Hour{Hour: h, Class: transform.ClassTTL, Objects: objects}
	for _, o := range objects {
		x.Events += o.Events
	}
	x.Deleted = x.Events
	x.Counted = &x.Deleted
	return x
}

// manifest appends a manifest to the chain.
func (s *shelf) manifest(hours ...Hour) {
	s.t.Helper()
	m := &Manifest{N: s.head.N + 1, Prev: s.head.Hash, Pipeline: "shop", Table: table, Hours: hours}
	if m.N%2 == 0 {
		m.Last = s.entry
	}
	data, head, err := Encode(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(layout.Manifest(table, m.N), data)
	s.head = head
}

// year fills the shelf with n hours, each with an object of two shards' records.
func (s *shelf) year(n int) (objects []Object) {
	for i := range n {
		a := s.object(transform.ClassTTL, hour0+layout.Hour(i), "a", i*10, i*10+10)
		b := s.object(transform.ClassTTL, hour0+layout.Hour(i), "b", i*7, i*7+7)
		s.manifest(closed(hour0+layout.Hour(i), a, b))
		objects = append(objects, a, b)
	}
	return objects
}

func (s *shelf) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// edit changes a file.
func (s *shelf) edit(name, old, new string) {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil || !strings.Contains(string(data), old) {
		s.t.Fatalf("%s holds no %q: %s, %v", name, old, data, err)
	}
	s.put(name, []byte(strings.Replace(string(data), old, new, 1)))
}

func (s *shelf) remove(name string) {
	s.t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) verify(o Options) *Report {
	s.t.Helper()
	o.Read = readJSON
	r, err := Verify(s.t.Context(), s.b, table, o)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Text == "" || f.Grade != Different && f.Grade != Unproven {
			s.t.Errorf("finding %+v", f)
		}
	}
	return r
}

func TestWholeArchiveIsOK(t *testing.T) {
	s := newShelf(t)
	s.year(30)
	late := s.object(transform.ClassTTL, hour0+3, "c", 0, 5) // of a shard whose parent is finished
	supplement := closed(hour0+3, late)
	supplement.Deleted, supplement.Supplement = 17+5+2+1, true
	supplement.Counted = &supplement.Deleted
	supplement.Skipped, supplement.Letters = 2, 1
	user := s.object(transform.ClassUser, hour0+29, "a", 0, 3)
	s.manifest(supplement, Hour{Hour: hour0 + 29, Class: transform.ClassUser, Objects: []Object{user}, Events: 3})
	s.object(transform.ClassTTL, hour0+30, "a", 300, 310) // of an hour that is open
	s.object(transform.ClassTTL, hour0+4, "b", 210, 211)  // late, and not yet named
	for _, depth := range []Depth{Quick, Bytes, Full} {
		var last Progress
		r := s.verify(Options{Head: &s.head, Depth: depth, Scratch: t.TempDir(), Progress: func(p Progress) { last = p }})
		want := &Report{Table: table, Verdict: OK, Depth: depth, Head: s.head, First: hour0, Last: hour0 + 29, Hours: 30,
			Manifests: 31, Objects: 62, Bytes: r.Bytes, Events: 30*17 + 5 + 3, Deleted: 30*17 + 8, Skipped: 2, Letters: 1,
			Open: 1, Late: 1, Findings: []Finding{}}
		if d := cmp.Diff(want, r); d != "" {
			t.Errorf("%s:\n%s", depth, d)
		}
		if last.Objects != 62 || last.AllObjects != 62 || last.Bytes != last.AllBytes {
			t.Errorf("%s: progress ends at %+v", depth, last)
		}
	}
	if r := s.verify(Options{}); r.Verdict != Unproven || !slices.Equal(r.Kinds(), []Kind{HeadUnknown}) {
		t.Errorf("without the head: %+v", r)
	}
	if r := s.verify(Options{Head: &Head{}}); r.Verdict != Unproven || !slices.Equal(r.Kinds(), []Kind{HeadUnknown}) {
		t.Errorf("after a recovery: %+v", r)
	}
	r := s.verify(Options{Head: &s.head, From: hour0 + 5, To: hour0 + 7})
	if r.Verdict != OK || r.Objects != 4 || r.Hours != 2 || r.Open+r.Late != 0 {
		t.Errorf("two hours: %+v", r)
	}
	r = s.verify(Options{Head: &s.head, From: hour0 + 5000})
	if r.Verdict != Unproven || !slices.Equal(r.Kinds(), []Kind{NothingClosed}) {
		t.Errorf("hours that are not closed: %+v", r)
	}
}

func TestEachFaultIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault   func(s *shelf, objects []Object)
		want    []Kind
		verdict Grade
		text    string // of one finding
	}{
		"an object has another byte": {func(s *shelf, o []Object) { s.edit(o[4].Name, `"Events":10`, `"Events":11`) },
			[]Kind{Hole, ObjectAltered}, Different, "was altered, its SHA-256"},
		"an object is longer": {func(s *shelf, o []Object) { s.edit(o[4].Name, `{`, ` {`) },
			[]Kind{Hole, ObjectAltered}, Different, "bytes in place of"},
		"an object is deleted": {func(s *shelf, o []Object) { s.remove(o[4].Name) },
			[]Kind{Hole, ObjectMissing}, Different, "and with it 10 events"},
		"an object is added": {func(s *shelf, _ []Object) {
			s.entry = 3
			s.object(transform.ClassTTL, hour0+2, "x", 0, 1)
		}, []Kind{ObjectAdded}, Different, "was added to a closed hour"},
		"an object is added to an hour before the archive": {func(s *shelf, _ []Object) {
			s.entry = 3
			s.object(transform.ClassTTL, hour0-9000, "x", 0, 1)
		}, []Kind{ObjectAdded}, Different, "was added to a closed hour"},
		"a file without a meaning is added": {func(s *shelf, _ []Object) { s.put(layout.Table(table)+"x", nil) },
			[]Kind{ObjectAdded}, Different, "is no object of an archive"},
		"the chain's end is cut off": {func(s *shelf, _ []Object) { s.remove(layout.Manifest(table, 6)) },
			[]Kind{ChainCut}, Different, "ends with manifest 5, but the replicator wrote 6"},
		"a manifest is deleted": {func(s *shelf, _ []Object) { s.remove(layout.Manifest(table, 3)) },
			[]Kind{Hole, HourMissing, ManifestMissing}, Different, "manifest 3 is missing"},
		"a manifest is altered": {func(s *shelf, _ []Object) { s.edit(layout.Manifest(table, 3), `"shop"`, `"shap"`) },
			[]Kind{ChainBroken}, Different, "manifest 4 was written after another manifest 3"},
		"the last manifest is altered": {
			func(s *shelf, _ []Object) { s.edit(layout.Manifest(table, 6), `"shop"`, `"shap"`) },
			[]Kind{ChainForked}, Different, "manifest 6 is not the one"},
		"a manifest is no manifest": {func(s *shelf, _ []Object) { s.edit(layout.Manifest(table, 3), `{`, `[`) },
			[]Kind{Hole, HourMissing, ManifestAltered}, Different, "manifest 3 was altered, it is not a manifest"},
		"a manifest of another table": {func(s *shelf, _ []Object) { s.edit(layout.Manifest(table, 6), table, "Sessionz") },
			[]Kind{ChainForked, ManifestAltered}, Different, "says that it is manifest 6 of Sessionz"},
		"records are archived twice": {func(s *shelf, _ []Object) {
			s.manifest(closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "a", 57, 65)))
		}, []Kind{Duplicate}, Different, "shard label/a after 1057 up to 1060"},
		"records are archived twice, and the other object is named": {func(s *shelf, o []Object) {
			s.manifest(closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "a", 57, 65)))
		}, []Kind{Duplicate}, Different, "holds records that tr_table=Sessions/tr_class=ttl/tr_dt=2025-11-25/tr_hr=05/"},
		"records are not archived": {func(s *shelf, _ []Object) {
			s.manifest(closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "a", 62, 65)))
			s.manifest(closed(hour0 + 7))
		}, []Kind{Hole}, Different, "has the records of shard label/a after 1060 up to 1062"},
		"records are not archived yet": {func(s *shelf, _ []Object) {
			s.manifest(closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "a", 62, 65)))
		}, []Kind{Hole}, Unproven, "may belong to an hour that is not closed"},
		"records are lost in a gap": {func(s *shelf, _ []Object) {
			h := closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "a", 62, 65))
			h.Incomplete, h.Counted = []string{"gap-1"}, nil
			s.manifest(h)
			s.manifest(closed(hour0 + 7))
		}, []Kind{Hole, HourIncomplete}, Unproven, "because of gap-1"},
		"a deletion is not archived": {func(s *shelf, _ []Object) {
			h := closed(hour0 + 6)
			h.Deleted = 1
			s.manifest(h)
		}, []Kind{CountWrong}, Different, "the log held 1 deletion, but 0 are archived"},
		"a deletion was read and not seen in the log": {func(s *shelf, _ []Object) {
			h, n := closed(hour0+6), int64(3)
			h.Counted = &n
			s.manifest(h)
		}, []Kind{CountWrong}, Different, "3 deletions counted when they were read"},
		"deletions were not counted": {func(s *shelf, _ []Object) {
			h := closed(hour0 + 6)
			h.Counted = nil
			s.manifest(h)
		}, []Kind{Uncounted}, Unproven, "cannot be shown"},
		"hours are not closed": {func(s *shelf, _ []Object) { s.manifest(closed(hour0 + 9)) },
			[]Kind{HourMissing}, Different, "2025-11-25T06 to 2025-11-25T08 were never closed"},
		"lines of an export that are no events": {func(s *shelf, _ []Object) {
			one := s.object(transform.ClassHealed, hour0+1, "file", 0, 2)
			two := s.object(transform.ClassHealed, hour0+1, "file", 7, 9)
			h := closed(hour0 + 6)
			s.manifest(h, Hour{Hour: hour0 + 1, Class: transform.ClassHealed, Supplement: true,
				Objects: []Object{one, two}, Events: 4})
		}, nil, OK, ""},
		"an hour is supplemented after it was forgotten": {func(s *shelf, _ []Object) {
			h := closed(hour0 + 6)
			h.Incomplete, h.Counted = []string{"gap-1"}, nil
			s.manifest(h)
			late := closed(hour0+6, s.object(transform.ClassTTL, hour0+6, "c", 0, 1))
			late.Incomplete, late.Counted, late.Supplement, late.Added = []string{"gap-2"}, nil, true, true
			s.manifest(late)
		}, []Kind{HourIncomplete}, Unproven, "gap-1, gap-2"},
		"an object is in the wrong hour": {func(s *shelf, _ []Object) {
			o := s.object(transform.ClassTTL, hour0+7, "a", 60, 65)
			data, err := os.ReadFile(s.path(o.Name))
			if err != nil {
				s.t.Fatal(err)
			}
			o.Name = strings.Replace(o.Name, "tr_hr=07", "tr_hr=06", 1)
			s.put(o.Name, data)
			s.manifest(closed(hour0+6, o))
		}, []Kind{ObjectAltered}, Different, "which is not what its name says"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			objects := s.year(6)
			c.fault(s, objects)
			r := s.verify(Options{Head: &s.head})
			if !slices.Equal(r.Kinds(), c.want) || r.Verdict != c.verdict {
				t.Errorf("verdict %s, %v, want %s, %v", r.Verdict, r.Kinds(), c.verdict, c.want)
			}
			says := func(f Finding) bool { return strings.Contains(f.Text, c.text) }
			if c.text != "" && !slices.ContainsFunc(r.Findings, says) {
				t.Errorf("no finding says %q: %+v", c.text, r.Findings)
			}
		})
	}
}

// TestIncompleteHoursThatAdjoinAreOneFinding: a stream that is lost makes three days of hours
// incomplete.
func TestIncompleteHoursThatAdjoinAreOneFinding(t *testing.T) {
	s := newShelf(t)
	s.year(2)
	for n, ids := range [][]string{{"a"}, {"a"}, {"a"}, {"a", "b"}, nil, {"a"}, {"b"}, nil} {
		h := closed(hour0 + 2 + layout.Hour(n))
		if h.Incomplete = ids; ids != nil {
			h.Counted = nil
		}
		s.manifest(h)
	}
	var got []string
	for _, f := range s.verify(Options{Head: &s.head}).Findings {
		hours, text, _ := strings.Cut(f.Text, ", ttl: events may be missing because of ")
		ids, _, _ := strings.Cut(text, ": ")
		got = append(got, hours+": "+ids)
		last := max(f.Until, f.Hour).String()
		if !strings.HasSuffix(hours, last) || !strings.HasPrefix(hours, f.Hour.String()) {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"2025-11-25T02 to 2025-11-25T04: a", "2025-11-25T05: a, b", "2025-11-25T07: a", "2025-11-25T08: b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestChainStopsAtTheFirstFault(t *testing.T) {
	s := newShelf(t)
	s.year(4)
	s.edit(layout.Manifest(table, 2), `"shop"`, `"shap"`)
	var got []uint64
	var fault error
	for m, err := range Chain(t.Context(), s.b, table, Head{}) {
		if fault = err; err == nil {
			got = append(got, m.N)
		}
	}
	var broken *ChainError
	if !errors.As(fault, &broken) || broken.Finding.Kind != ChainBroken || !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("read %v, then %v", got, fault)
	}
}

// TestStoreThatFailsIsNotAFinding: whoever reads that an object is altered looks for who altered
// it.
func TestStoreThatFailsIsNotAFinding(t *testing.T) {
	s := newShelf(t)
	s.year(2)
	away := &noted{ReaderAt: failing{}}
	if _, err := readJSON(t.Context(), away, 10, false); err == nil || away.failed() == nil {
		t.Errorf("read: %v, noted: %v", err, away.failed())
	}
	fails := func(ctx context.Context, r io.ReaderAt, size int64, all bool) (*Content, error) {
		r.(*noted).ReaderAt = failing{}
		return readJSON(ctx, r, size, all)
	}
	r, err := Verify(t.Context(), s.b, table, Options{Depth: Quick, Read: fails})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a verification whose store fails: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Verify(ctx, s.b, table, Options{Read: readJSON}); err == nil {
		t.Errorf("a verification that was interrupted says %s", r.Verdict)
	}
	s.edit(layout.Manifest(table, 2), `"format": 1`, `"format": 2`)
	if _, err := Verify(t.Context(), s.b, table, Options{Read: readJSON}); err == nil {
		t.Error("a newer manifest was read")
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestObjectOfTheSameSizeIsFoundByItsFooter, where no byte but those of the footer is read.
func TestObjectOfTheSameSizeIsFoundByItsFooter(t *testing.T) {
	for _, test := range []struct{ old, new, text string }{
		{`"Events":10`, `"Events":11`, "holds 11 events in place of 10"},
		{`"Digest":"30"`, `"Digest":"31"`, "holds other events than its manifest says"},
	} {
		s := newShelf(t)
		objects := s.year(6)
		s.edit(objects[4].Name, test.old, test.new)
		r := s.verify(Options{Head: &s.head, Depth: Quick})
		if r.Verdict != Different || r.Counts[ObjectAltered] != 1 || !strings.Contains(r.Findings[0].Text, test.text) {
			t.Errorf("%s: %+v", test.new, r)
		}
	}
}
