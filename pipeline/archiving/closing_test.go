package archiving

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestHourClosesOnlyWhenItIsOver: five minutes behind its end, as far as the log is copied,
// whatever time it is, and when none of its events is without an object that is there.
func TestHourClosesOnlyWhenItIsOver(t *testing.T) {
	end := hour0.End()
	wait := func(hour layout.Hour) func(*ledger.State) {
		return func(s *ledger.State) { s.Parts[ledger.PartKey{Class: transform.ClassTTL, Hour: hour}] = ledger.Part{} }
	}
	open := func(hour layout.Hour) func(*ledger.State) {
		return func(s *ledger.State) { s.Intents = []ledger.Intent{{Hour: hour}} }
	}
	none := func(*ledger.State) {}
	for name, x := range map[string]struct {
		through time.Time
		state   func(*ledger.State)
		closes  bool
	}{
		"it is over":                    {end.Add(5 * time.Minute), none, true},
		"records may be late":           {end.Add(5*time.Minute - time.Millisecond), none, false},
		"nothing is copied yet":         {time.UnixMilli(0), none, false},
		"events wait for an object":     {end.Add(time.Hour), wait(hour0), false},
		"an object is not there yet":    {end.Add(time.Hour), open(hour0), false},
		"events of the next hour wait":  {end.Add(5 * time.Minute), wait(hour0 + 1), true},
		"an object of the next is open": {end.Add(5 * time.Minute), open(hour0 + 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := ledger.New()
			s.Began, s.Closed = hour0, hour0
			x.state(s)
			a := New(Options{
				Facts: func(layout.Hour) Facts { return Facts{} },
				Now:   func() change.Millis { return change.MillisOf(end.Add(48 * time.Hour)) },
			})
			a.Passed(change.MillisOf(x.through))
			l := &life{a: a, w: &writer{state: s}}
			if m := l.nextManifest(); (m != nil) != x.closes {
				t.Errorf("manifest %+v", m)
			}
		})
	}
}

// TestHourOfTheFirstClaimIsNotProven: what expired in it before may be missing; and of an
// incomplete one no numbers are given that could be taken for all.
func TestHourOfTheFirstClaimIsNotProven(t *testing.T) {
	n := int64(5)
	for name, x := range map[string]struct {
		whole      bool
		hour       layout.Hour
		incomplete []string
		counted    bool
	}{
		"an archive from the table's start": {true, hour0, nil, true},
		"an archive that came later":        {false, hour0, nil, false},
		"the hour after that":               {false, hour0 + 1, nil, true},
		"a gap":                             {true, hour0, []string{"gap-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &life{a: New(Options{Facts: func(layout.Hour) Facts { return Facts{Counted: &n, Incomplete: x.incomplete} }})}
			s := ledger.New()
			s.Began, s.Whole = hour0, x.whole
			if _, counted := l.facts(s, ledger.PartKey{Class: transform.ClassTTL, Hour: x.hour}); (counted != nil) != x.counted {
				t.Errorf("counted: %v", counted)
			}
		})
	}
}

// TestEarlierLifeStaysOvertaken: after a recovery epochs begin again, so that the life counts
// first.
func TestEarlierLifeStaysOvertaken(t *testing.T) {
	w := newWorld(t)
	w.epoch = 6
	w.edit = func(o *Options) { o.Life = 1 }
	first := w.start()
	w.until("the claim", func(s *ledger.State) bool { return s.Claim.Epoch == 7 })
	first.end()
	w.epoch = 0
	w.edit = func(o *Options) { o.Life = 2 }
	r := w.start()
	w.until("a later life with a lower epoch claims", func(s *ledger.State) bool { return s.Claim.Life == 2 })
	r.end()
	w.epoch = 8
	w.edit = func(o *Options) { o.Life = 1 }
	old := w.start()
	w.await("an owner of the earlier life stops", func() bool {
		return strings.Contains(old.Status().Trouble, ErrOvertaken.Error())
	})
}

// TestManifestOfAFrozenOwnerIsAdopted: it was about to be created when another owner took over, and
// appears between that one's start and its first manifest.
func TestManifestOfAFrozenOwnerIsAdopted(t *testing.T) {
	w := newWorld(t)
	old := w.start()
	reached, released := make(chan struct{}), make(chan struct{})
	wake := sync.OnceFunc(func() { close(released) })
	t.Cleanup(wake)
	w.files.hook(func(name string) error {
		if strings.Contains(name, "manifest") {
			w.files.hook(nil, nil)
			close(reached)
			<-released
		}
		return nil
	}, nil)
	old.store(w.deleted(0, 6))
	old.over(0)
	w.await("it is about to create the manifest", isOver(reached))
	r := w.start()
	w.until("another owner has claimed", func(s *ledger.State) bool { return s.Claim.Epoch == 2 })
	r.store(w.deleted(1, 6))
	w.until("and made an object", func(s *ledger.State) bool { return len(s.Parts)+len(s.Intents) == 0 })
	wake()
	w.await("the manifest appears", func() bool { _, manifests := w.names(); return len(manifests) == 1 })
	old.end()
	r.store(w.deleted(0, 2))
	s := r.closed(1)
	if s.Head.N < 2 {
		t.Errorf("the chain ends with %d", s.Head.N)
	}
	w.proven(s)
}

// TestManifestOfAnotherChainHaltsTheObjects: nothing is built upon it.
func TestManifestOfAnotherChainHaltsTheObjects(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	r.end()
	text, _, err := manifest.Encode(&manifest.Manifest{N: 2, Prev: "another", Pipeline: "shop", Table: table})
	must(t, err)
	name := layout.Manifest(table, 2)
	must(t, w.putBeside(name, string(text)))
	r = w.start()
	w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == "archive_conflict" })
	w.moveAway(name)
	r.store(w.deleted(1, 6))
	w.proven(r.closed(1))
}

// TestManifestNamesObjectOfAnOpenIntent: the stream has lost its end, with the entries that said
// so. The object is there, so its events are not archived again.
func TestManifestNamesObjectOfAnOpenIntent(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.CutAt = 1 << 20 }
	r := w.start()
	w.files.hook(nil, func(string) error { r.crash(); return errCrash })
	_, _ = r.Store(r.dying, w.deleted(0, 6))
	<-r.done
	w.files.hook(nil, nil)
	s := w.until("an intent", func(s *ledger.State) bool { return len(s.Intents) == 1 })
	i := s.Intents[0]
	text, err := os.ReadFile(filepath.Join(w.dir, i.Name))
	must(t, err)
	manifested, _, err := manifest.Encode(&manifest.Manifest{
		N: 1, Pipeline: "shop", Table: table, Last: i.Last, Hours: []manifest.Hour{{
			Hour: i.Hour, Class: i.Class, Events: i.Events, Deleted: i.Events, Counted: &i.Events, Objects: []manifest.Object{{
				Name: i.Name, Bytes: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256(text)), Events: i.Events,
				Digest: i.Digest,
			}},
		}},
	})
	must(t, err, w.putBeside(layout.Manifest(table, 1), string(manifested)))
	r = w.start()
	r.store(w.deleted(1, 6))
	w.check(r.closed(1))
}

// TestStreamIsEnabledAgain: a stream with another label may use names of shards and numbers of
// records again.
func TestStreamIsEnabledAgain(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	first := w.deleted(0, 6)
	r.store(first)
	r.closed(0)
	second := w.deleted(1, 6)
	for n := range second {
		second[n].Stream, second[n].Shard, second[n].Sequence = "label 2", first[n].Shard, first[n].Sequence
	}
	r.store(second)
	w.until("objects of both", func(s *ledger.State) bool { return len(s.Parts)+len(s.Intents) == 0 })
	r.end()
	r = w.start()
	r.store(slices.Concat(first, second)) // the mark of the table's log was lost
	w.proven(r.closed(1))
	r.end()
	w.loseStream() // and everything else
	r = w.start()
	r.store(slices.Concat(first, second, w.deleted(3, 6)))
	w.check(r.closed(3))
}

// TestIntentOfAdoptedEventsIsGivenUp: another history has made an object of some of its events,
// under another name.
func TestIntentOfAdoptedEventsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.files.hook(func(string) error { return errors.New("away") }, nil)
	w.edit = func(o *Options) { o.CutAt = 1 << 20 }
	r := w.start()
	records := w.deleted(0, 6)
	_, err := r.Store(t.Context(), records)
	must(t, err)
	w.until("an intent", func(s *ledger.State) bool { return len(s.Intents) == 1 })
	r.end()
	w.files.hook(nil, nil)
	part := partOf(records[0].Event)
	must(t, w.putBeside(part.Object(1, 1, "0123456789abcdef0123456789abcdef", "parquet"), ""))
	r = w.start()
	s := r.closed(0)
	if kinds := w.check(s); !slices.Contains(kinds, manifest.HourIncomplete) {
		t.Errorf("archive verify: %v, though the stream did not know an object", kinds)
	}
}

// TestBucketThatCreatesNamesTwiceIsRefused: two owners could write one object.
func TestBucketThatCreatesNamesTwiceIsRefused(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Objects = careless{w.files} }
	r := w.start()
	r.store(w.deleted(0, 3))
	w.await("the objects are halted", func() bool { return w.halted(SinkObjects) != "" })
	if objects, _ := w.names(); len(objects) > 0 {
		t.Errorf("objects %v", objects)
	}
}

// careless is a bucket that overwrites, and says that it has created.
type careless struct{ *flaky }

func (c careless) Create(ctx context.Context, name string, f *os.File, size int64) error {
	err := c.flaky.Create(ctx, name, f, size)
	if strings.Contains(name, layout.Probe) {
		return nil
	}
	return err
}
