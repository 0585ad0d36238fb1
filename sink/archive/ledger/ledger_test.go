package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// stream is the messages of a stream, and the state that is their fold.
type stream struct {
	t     testing.TB
	first uint64
	msgs  [][]byte
	state *State
}

func newStream(t testing.TB) *stream { return &stream{t: t, first: 1000, state: New()} }

func (s *stream) append(body any, data []byte) {
	s.t.Helper()
	msg, err := Encode(body, s.state.Hash, data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.msgs = append(s.msgs, msg)
	if _, err := s.state.Apply(s.first+uint64(len(s.msgs))-1, msg); err != nil {
		s.t.Fatal(err)
	}
}

// store stores records as the archiver does.
func (s *stream) store(records ...Record) {
	s.t.Helper()
	b := s.state.NewBatch(0)
	for _, r := range records {
		b.Add(r)
	}
	if !b.Empty() {
		body, data := b.Encode()
		s.append(body, data)
	}
}

func (s *stream) claim(epoch uint64) {
	s.append(&Claim{Owner: "o", Epoch: epoch, Date: hour0, Objects: true, Subject: true}, nil)
}

const hour0 = change.Millis(1_777_939_200_000)

func event(shard string, n int, class transform.EventClass, hour int) *transform.Event {
	return &transform.Event{
		Class: class, Source: "arn", Table: "T", Subject: fmt.Sprintf(`{"pk":{"N":"%d"}}`, n), Stream: "label", Shard: shard,
		Sequence: change.SequenceNumber(strconv.Itoa(n)), Version: change.Version(n),
		Created: hour0 + change.Millis(hour)*3_600_000, Item: []byte(fmt.Sprintf(`{"n":{"N":"%d"}}`, n)),
	}
}

// object returns the events of a part in the entries from first on, and the intent of their object.
func (s *stream) object(key PartKey, first uint64) (ids []string, i *Intent) {
	i = &Intent{Class: key.Class, Hour: key.Hour, First: first, Coverage: coverage.Set{}, Last: s.state.EndOf(key)}
	for n, msg := range s.msgs {
		if seq := s.first + uint64(n); seq < first || seq > i.Last {
			continue
		}
		e, err := Decode(msg)
		if err != nil {
			s.t.Fatal(err)
		}
		if b, ok := e.Body.(*Events); ok {
			for _, g := range b.Groups {
				if g.Class == key.Class && g.Hour == key.Hour {
					i.Coverage.Union(g.Coverage)
					i.Stored += int64(g.Length)
				}
			}
		}
		if err := e.Each(key.Class, int64(key.Hour), func(e *transform.Event) error {
			ids = append(ids, e.ID())
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	i.Events = int64(len(ids))
	i.Name = fmt.Sprintf("%s-%s-%d", key.Class, key.Hour, i.Last)
	return ids, i
}

// TestEachEventIsInOneObject: random records, read again after a lost mark, cut into objects at
// random, with snapshots in between. Each kept record is in exactly one object, and their coverage
// is disjoint and without holes.
func TestEachEventIsInOneObject(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStream(t)
		s.claim(1)
		shards := []string{"a", "b"}
		var history []Record // of both shards, in the order of the log
		next := map[string]int{"a": 100, "b": 200}
		objects := map[string][]string{} // ids by object
		covered := map[transform.EventClass]coverage.Set{}
		kept := map[string]bool{}
		add := func() {
			sh := rapid.SampledFrom(shards).Draw(rt, "shard")
			next[sh] += rapid.IntRange(1, 3).Draw(rt, "step")
			class := rapid.SampledFrom([]transform.EventClass{transform.ClassTTL, transform.ClassUser}).Draw(rt, "class")
			r := Record{Event: event(sh, next[sh], class, rapid.IntRange(0, 2).Draw(rt, "hour"))}
			r.Verdict = rapid.SampledFrom([]Verdict{Keep, Keep, Keep, Skip, Letter}).Draw(rt, "verdict")
			history = append(history, r)
			if r.Verdict == Keep {
				kept[r.ID()] = true
			}
		}
		cut := func() {
			open := s.state.OpenParts()
			if len(open) == 0 {
				return
			}
			key := rapid.SampledFrom(open).Draw(rt, "part")
			ids, i := s.object(key, s.state.Parts[key].First)
			s.append(i, nil)
			if rapid.IntRange(0, 3).Draw(rt, "superseded") == 0 {
				s.append(&Superseded{Name: i.Name}, nil)
				return
			}
			s.append(&Done{Name: i.Name}, nil)
			if objects[i.Name] != nil {
				rt.Fatalf("two objects of one name")
			}
			objects[i.Name] = ids
			if covered[key.Class] == nil {
				covered[key.Class] = coverage.Set{}
			}
			if twice := covered[key.Class].Overlap(i.Coverage); len(twice) > 0 {
				rt.Fatalf("object %s covers again: %v", i.Name, twice)
			}
			covered[key.Class].Union(i.Coverage)
		}
		stored := 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1:
				add()
			case 2:
				n := rapid.IntRange(0, len(history)-stored).Draw(rt, "n")
				s.store(history[stored : stored+n]...)
				stored += n
			case 3: // the mark of the table's log was lost
				s.store(history[rapid.IntRange(0, stored).Draw(rt, "back"):stored]...)
			case 4:
				cut()
			case 5: // another owner, from a snapshot
				before := s.state
				s.snapshot(rapid.IntRange(50, 400).Draw(rt, "part size"))
				s.restore()
				if diff := cmp.Diff(before, s.state, cmpopts.IgnoreUnexported(State{}), cmpopts.EquateEmpty()); diff != "" {
					rt.Fatalf("restored (-want +got):\n%s", diff)
				}
				s.claim(before.Claim.Epoch + 1)
			}
		}
		s.store(history[stored:]...)
		for len(s.state.Parts) > 0 {
			cut()
		}
		var all []string
		for _, ids := range objects {
			all = append(all, ids...)
		}
		slices.Sort(all)
		want := slices.Sorted(func(yield func(string) bool) {
			for id := range kept {
				if !yield(id) {
					return
				}
			}
		})
		if diff := cmp.Diff(want, all, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("(-kept +archived):\n%s", diff)
		}
		for class, c := range covered {
			if holes := c.Holes(); len(holes) > 0 {
				rt.Fatalf("class %s has holes %v in %v", class, holes, c)
			}
		}
	})
}

func (s *stream) snapshot(size int) {
	parts, err := s.state.SnapshotParts(size)
	if err != nil {
		s.t.Fatal(err)
	}
	first := s.state.Seq + 1
	for n, p := range parts {
		s.append(&Snapshot{Part: n, Parts: len(parts), First: first}, p)
	}
}

// restore makes the state anew from the last snapshot.
func (s *stream) restore() {
	first := s.state.SnapshotFirst
	restored, err := Restore(first, s.msgs[first-s.first:])
	if err != nil {
		s.t.Fatal(err)
	}
	s.state = restored
}

func TestNextOwnerStoresNothingTwiceAndNothingTooLittle(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	records := []Record{{Event: event("a", 1, transform.ClassTTL, 0)}, {Event: event("a", 5, transform.ClassTTL, 0)}}
	s.store(records...)
	s.claim(2)
	s.store(append(records, Record{Event: event("a", 9, transform.ClassTTL, 1)})...)
	ids, _ := s.object(PartKey{transform.ClassTTL, layout.HourOf(hour0.Time())}, 0)
	if diff := cmp.Diff([]string{"label/a/1", "label/a/5"}, ids); diff != "" {
		t.Error(diff)
	}
	c := s.state.Counts[layout.HourOf(hour0.Time())]
	if c.Deleted != 2 {
		t.Errorf("the deletions of an hour are counted as %d", c.Deleted)
	}
}

// TestAdoptedObjectsAreNotArchivedAgain: the stream lost its end, or is new, and the bucket has
// what it said.
func TestAdoptedObjectsAreNotArchivedAgain(t *testing.T) {
	lost := newStream(t)
	lost.claim(1)
	lost.store(Record{Event: event("a", 1, transform.ClassTTL, 0)}, Record{Event: event("a", 5, transform.ClassTTL, 1)},
		Record{Event: event("a", 7, transform.ClassTTL, 0)})
	key := PartKey{transform.ClassTTL, layout.HourOf(hour0.Time())}
	_, object := lost.object(key, 0)
	adopted := &Adopted{Object: manifest.Object{Name: "o"}, Class: key.Class, Hour: key.Hour, Coverage: object.Coverage}

	again := []Record{
		{Event: event("a", 1, transform.ClassTTL, 0)}, {Event: event("a", 5, transform.ClassTTL, 1)},
		{Event: event("a", 7, transform.ClassTTL, 0)}, {Event: event("a", 9, transform.ClassTTL, 0)},
	}
	for name, s := range map[string]*stream{"new": newStream(t), "with the events, but not the object": newStream(t)} {
		s.claim(1)
		if name != "new" {
			s.store(again[:3]...)
		}
		s.append(adopted, nil)
		s.store(again...)
		for _, p := range s.state.OpenParts() {
			part := s.state.Parts[p]
			if twice := part.Coverage.Overlap(object.Coverage); len(twice) > 0 {
				t.Errorf("%s: part %v covers again %v", name, p, twice)
			}
		}
		later := s.state.Parts[PartKey{transform.ClassTTL, key.Hour + 1}]
		if !later.Coverage.Contains("label/a", "5") {
			t.Errorf("%s: the event of the other hour is missing: %v", name, later.Coverage)
		}
		if p := s.state.Parts[key]; !p.Coverage.Contains("label/a", "9") || p.Coverage.Contains("label/a", "7") {
			t.Errorf("%s: what is behind the object is %v", name, p.Coverage)
		}
	}
}

func TestLetterIsArchivedLaterAndOnce(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	letter := event("a", 5, transform.ClassTTL, 0)
	s.store(Record{Event: event("a", 1, transform.ClassTTL, 0)}, Record{Event: letter, Verdict: Letter},
		Record{Event: event("a", 7, transform.ClassTTL, 0)})
	hour := layout.HourOf(hour0.Time())
	if c := s.state.Counts[hour]; c != (Counts{Deleted: 3, Letters: 1}) {
		t.Errorf("counts %+v", c)
	}
	s.store(Record{Event: letter, Verdict: Late})
	s.store(Record{Event: letter, Verdict: Late}) // the command was killed before it dropped the letter
	if c := s.state.Counts[hour]; c != (Counts{Deleted: 3}) {
		t.Errorf("counts %+v", c)
	}
	ids, i := s.object(PartKey{transform.ClassTTL, hour}, 0)
	if diff := cmp.Diff([]string{"label/a/1", "label/a/7", "label/a/5"}, ids); diff != "" {
		t.Error(diff)
	}
	if h := i.Coverage.Holes(); len(h) > 0 {
		t.Errorf("holes %v", h)
	}
}

func TestWhatIsNeededIsNotTrimmed(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	s.store(Record{Event: event("a", 1, transform.ClassTTL, 0)})
	at := s.state.Seq
	s.snapshot(1 << 20)
	s.append(&Subject{Seq: s.state.Seq}, nil)
	if got := s.state.Needed(); got != at {
		t.Errorf("needed from %d, the event is in %d", got, at)
	}
	_, i := s.object(s.state.OpenParts()[0], 0)
	s.append(i, nil)
	if got := s.state.Needed(); got > at {
		t.Errorf("needed from %d, the object is made of %d", got, at)
	}
	s.append(&Done{Name: i.Name}, nil)
	if got := s.state.Needed(); got != s.state.SnapshotFirst {
		t.Errorf("needed from %d, the snapshot is at %d", got, s.state.SnapshotFirst)
	}
	s.append(&Subject{Seq: at - 1}, nil)
	if got := s.state.Needed(); got != at {
		t.Errorf("needed from %d, the subject has everything before %d", got, at)
	}
}

func TestForkAndNewerFormatAreRefused(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	other, err := Encode(&Subject{Seq: 1}, Hash{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.state.Apply(s.state.Seq+1, other); !errors.Is(err, ErrFork) {
		t.Errorf("an entry of another history: %v", err)
	}
	newer, _ := Encode(&Subject{Seq: 1}, s.state.Hash, nil)
	newer[len(magic)] = Format + 1
	_, err = s.state.Apply(s.state.Seq+1, newer)
	if n := (*NewerFormatError)(nil); !errors.As(err, &n) || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("an entry of a newer format: %v", err)
	}
	broken := slices.Concat(magic, []byte("\x01c and no more"))
	if _, err := s.state.Apply(s.state.Seq+1, broken); !errors.Is(err, ErrForeign) {
		t.Errorf("an entry that is cut: %v", err)
	}
	if _, err := s.state.Apply(s.state.Seq+2, []byte("hello")); !errors.Is(err, ErrForeign) {
		t.Errorf("a stray message behind a missing one: %v", err)
	}
	hash := s.state.Hash
	if e, err := s.state.Apply(s.state.Seq+1, []byte("hello")); err != nil || e != nil || s.state.Strays != 1 {
		t.Errorf("a stray message: %v, %v, %d counted", e, err, s.state.Strays)
	}
	next, _ := Encode(&Subject{Seq: 1}, hash, nil)
	if _, err := s.state.Apply(s.state.Seq+1, next); err != nil {
		t.Errorf("the entry behind a stray message: %v", err)
	}
}

// TestDamagedEntriesAreErrors flips and cuts bytes: no panic, and no event that was not there.
func TestDamagedEntriesAreErrors(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	s.store(Record{Event: event("a", 1, transform.ClassTTL, 0)}, Record{Event: event("b", 2, transform.ClassUser, 3)})
	msg := s.msgs[1]
	for n := range msg {
		for _, damaged := range [][]byte{msg[:n], flip(msg, n)} {
			e, err := Decode(damaged)
			if err != nil {
				continue
			}
			_ = e.Each("", 0, func(*transform.Event) error { return nil })
		}
	}
}

func flip(msg []byte, n int) []byte {
	d := slices.Clone(msg)
	d[n] ^= 0x41
	return d
}

// A state may hold one long text, such as the name of a place. What is stored must be read again.
func TestStateWithALongTextIsRestored(t *testing.T) {
	s := New()
	s.Place = strings.Repeat("x", 400<<10)
	parts, err := s.SnapshotParts(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := Encode(&Snapshot{Parts: 1}, Hash{}, parts[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Restore(7, [][]byte{msg}); err != nil || got.Place != s.Place {
		t.Errorf("%d bytes in %d: %v", len(s.Place), len(parts[0]), err)
	}
}

func TestEventsAreReadBack(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	want := event("a", 7, transform.ClassTTL, 0)
	want.Expiry, want.Item = "1700000000.5", nil
	other := event("a", 8, transform.ClassTTL, 0)
	other.Item = []byte{}
	s.store(Record{Event: want}, Record{Event: other})
	e, err := Decode(s.msgs[1])
	if err != nil {
		t.Fatal(err)
	}
	var got []*transform.Event
	if err := e.Each("", 0, func(e *transform.Event) error {
		got = append(got, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*transform.Event{want, other}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEndOfAPart: what comes behind the events of a part is not read for its object.
func TestEndOfAPart(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	s.store(Record{Event: event("a", 7, transform.ClassTTL, 0)})
	end := s.state.Seq
	s.store(Record{Event: event("a", 8, transform.ClassTTL, 1)})
	part := PartKey{Class: transform.ClassTTL, Hour: layout.HourOf(hour0.Time())}
	if got := s.state.EndOf(part); got != end {
		t.Errorf("the events of the part end at %d, not at %d", end, got)
	}
	_, i := s.object(part, s.state.Parts[part].First)
	s.append(i, nil)
	s.append(&Superseded{Name: i.Name}, nil)
	if got := s.state.EndOf(part); got != end {
		t.Errorf("the events of a superseded object end at %d, not at %d", end, got)
	}
	// A build before this one wrote snapshots that do not say it.
	p := s.state.Parts[part]
	p.Last = 0
	s.state.Parts[part] = p
	if got := s.state.EndOf(part); got != s.state.Seq {
		t.Errorf("where it is not known, the events of the part end at %d, not at %d", s.state.Seq, got)
	}
}

// TestSubjectAloneForgets: there is no manifest whose hours would have to be known.
func TestSubjectAloneForgets(t *testing.T) {
	s := newStream(t)
	s.append(&Claim{Owner: "o", Epoch: 1, Date: hour0, Subject: true, Lost: &Lost{
		ID: "x", Since: layout.HourOf(hour0.Time()), Until: layout.HourOf(hour0.Time()),
	}}, nil)
	for hour := range 3 * keepCounts {
		s.store(Record{Event: event("a", 10+hour, transform.ClassTTL, hour)})
	}
	if n := len(s.state.Counts); n > keepCounts+1 || len(s.state.Lost) > 0 {
		t.Errorf("%d hours are counted, lost %v", n, s.state.Lost)
	}
}

// TestObjectThatIsMissingIsAHole: intervals of a shard touch, over classes that are skipped and
// owners, so that what lies between two of them was never archived.
func TestObjectThatIsMissingIsAHole(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	s.store(Record{Event: event("a", 101, transform.ClassTTL, 0)}, Record{Event: event("a", 103, transform.ClassTTL, 1)})
	s.claim(2)
	s.store(Record{Event: event("a", 104, transform.ClassTTL, 1), Verdict: Skip},
		Record{Event: event("a", 107, transform.ClassTTL, 0)})
	hours := map[int]coverage.Set{}
	for hour := range 2 {
		key := PartKey{transform.ClassTTL, layout.HourOf(hour0.Time()) + layout.Hour(hour)}
		hours[hour] = s.state.Parts[key].Coverage.Clone()
	}
	want := coverage.Set{"label/a": {{From: "101", To: "103"}}}
	if diff := cmp.Diff(want, hours[0].Holes()); diff != "" {
		t.Errorf("without the second hour (-want +got):\n%s", diff)
	}
	hours[0].Union(hours[1])
	if got := hours[0]["label/a"]; len(got) != 1 || got[0].From != "100" || got[0].To != "107" {
		t.Errorf("both hours cover %v", got)
	}
}

// TestKnownRecordIsNotCoveredAgain: an object has it, though the state has forgotten that.
func TestKnownRecordIsNotCoveredAgain(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	s.store(Record{Event: event("a", 101, transform.ClassHealed, 0)},
		Record{Event: event("a", 103, transform.ClassHealed, 0), Verdict: Known},
		Record{Event: event("a", 105, transform.ClassHealed, 0)})
	c := s.state.Parts[PartKey{transform.ClassHealed, layout.HourOf(hour0.Time())}].Coverage
	for _, n := range []change.SequenceNumber{"101", "103", "105"} {
		if want := n != "103"; c.Contains("label/a", n) != want {
			t.Errorf("the part covers %s: %v", n, !want)
		}
	}
}

// TestLetterIsRetriedBeforeItsRecordComesAgain: the stream that knew the letter is lost, and the
// log gives the record again, which is no letter any more.
func TestLetterIsRetriedBeforeItsRecordComesAgain(t *testing.T) {
	s := newStream(t)
	s.claim(1)
	letter := Record{Event: event("a", 103, transform.ClassTTL, 0)}
	late := letter
	late.Verdict = Late
	s.store(late)
	s.store(Record{Event: event("a", 101, transform.ClassTTL, 0)}, letter,
		Record{Event: event("a", 105, transform.ClassTTL, 0)})
	ids, _ := s.object(PartKey{transform.ClassTTL, layout.HourOf(hour0.Time())}, s.first)
	slices.Sort(ids)
	if want := []string{"label/a/101", "label/a/103", "label/a/105"}; !slices.Equal(ids, want) {
		t.Errorf("events %v, want %v", ids, want)
	}
}
