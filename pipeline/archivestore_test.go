package pipeline_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// objects is a bucket of archived events that is away on demand.
type objects struct {
	bucket.Bucket
	away atomic.Bool
}

func (o *objects) Create(ctx context.Context, name string, f *os.File, size int64) error {
	if o.away.Load() {
		return errors.New("the bucket is away")
	}
	return o.Bucket.Create(ctx, name, f, size)
}

// archived lets the items of Orders expire into a bucket.
func (w *world) archived() *objects {
	w.t.Helper()
	b, err := bucket.Open(w.t.Context(), "file://"+w.t.TempDir(), bucket.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = b.Close() })
	o := &objects{Bucket: b}
	w.onTTL = "archive"
	w.archive = &archiving.Place{
		Objects: o, Form: object.Options{Format: object.Parquet, Pipeline: "shop"}, Once: &archiving.Once{},
		Scratch: w.t.TempDir(), Roll: time.Millisecond,
	}
	w.qopts = func(o *queue.Options) { o.ArchiveMaxBytes = 8 << 20 }
	return o
}

// createExpiring makes a table whose items expire.
func (w *world) createExpiring(name string) {
	w.t.Helper()
	w.createTable(name)
	w.post("UpdateTimeToLive",
		fmt.Sprintf(`{"TableName":%q,"TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`, name))
}

// expire writes n items with so many bytes that do not compress, and lets them expire.
func (w *world) expire(table, pk string, n, size int) {
	w.t.Helper()
	for i := range n {
		b := make([]byte, size/2)
		_, _ = rand.Read(b)
		w.put(table, pk, fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"},"b":{"S":"%x"}`, w.clock.Now().Unix()-1, b))
	}
	w.tables.ExpireNow(w.clock.Now())
}

// expired returns the deletions by TTL, by shard and sequence number.
func (w *world) expired(table string) map[string]bool {
	all := map[string]bool{}
	w.ledger.Changes(table, func(c ledger.Change) bool {
		if c.TTL {
			all[c.Shard+" "+c.Seq] = true
		}
		return true
	})
	return all
}

// events returns how often a deletion is in objects.
func (w *world) events(b bucket.Bucket, table string) map[string]int {
	w.t.Helper()
	all := map[string]int{}
	for x, err := range b.List(w.t.Context(), layout.Table(table)) {
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := b.Open(w.t.Context(), x.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for e, err := range object.Read(r, r.Size()) {
			if err != nil {
				w.t.Fatal(err)
			}
			all[e.Shard+" "+string(e.Sequence)]++
		}
		_ = r.Close()
	}
	return all
}

// archivedOnce waits until every expired item but some is in an object, and checks that each of
// them is there once.
func (r *run) archivedOnce(b bucket.Bucket, table string, but int) map[string]int {
	r.t.Helper()
	want := r.expired(table)
	r.hastenUntil("everything is in objects", func() bool { return len(r.events(b, table)) >= len(want)-but })
	got := r.events(b, table)
	for at, n := range got {
		if n != 1 || !want[at] {
			r.t.Errorf("the deletion %s is archived %d times; did the item expire: %v", at, n, want[at])
		}
	}
	if len(got) != len(want)-but {
		r.t.Errorf("%d events for %d items that expired, and %d letters", len(got), len(want), but)
	}
	return got
}

// TestBucketThatIsAwayHoldsNobody: the archive's stream fills up to its mark of 80 %, and then
// either the archive stands or events become dead letters. Bigtable gets on, of the same table and
// of another one.
func TestBucketThatIsAwayHoldsNobody(t *testing.T) {
	for name, letters := range map[string]bool{"hold": false, "dead letters": true} {
		t.Run(name, func(t *testing.T) {
			long(t, "4 s")
			w := newWorld(t)
			b := w.archived()
			b.away.Store(true)
			w.archive.Letters = letters
			srv := startNATS(t)
			srv.o.MaxPayload = 1 << 20 // so that an entry is small against the stream
			srv.restart()
			w.qopts = func(o *queue.Options) {
				o.Dir, o.URL, o.MaxBytes, o.LettersMaxBytes, o.ArchiveMaxBytes = "", srv.url, 64<<20, 16<<20, 6<<20
			}
			w.opts = func(o *pipeline.Options) { o.Tables[1].Archive = pipeline.Archive{} }
			w.createExpiring("Orders")
			w.createTable("Plain")
			r := w.start("Orders", "Plain")
			w.expire("Orders", "p", 70, 100_000)
			for i := range 20 {
				w.put("Plain", "p", fmt.Sprint(i), `"v":{"N":"1"}`)
			}
			r.hastenUntil("the archive's stream is full", func() bool {
				a := r.table("Orders").Archive
				if letters { // which may make room again, by the server's own figure
					return r.table("Orders").DeadLetters > 0
				}
				return a != nil && a.Stalled
			})
			w.put("Orders", "q", "last", `"v":{"N":"1"}`)
			r.hastenUntil("Bigtable has everything", func() bool {
				s := r.fold("Orders")
				return len(r.stored("Orders")) == 1 && s.Marks["bigtable"].Seq >= s.LastFrame && len(r.stored("Plain")) == 20
			})
			if s := r.fold("Orders"); !letters && s.Marks[checkpoint.SinkArchive].Seq >= s.LastFrame {
				t.Errorf("the archive's mark has passed what is not stored: %+v", s.Marks)
			}
			j, err := r.log("Orders").ExistingArchive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info, err := j.Info(t.Context()); err != nil || info.Fraction() < .75 || info.Fraction() > .98 {
				t.Errorf("the archive's stream is full to %.2f, %v", info.Fraction(), err)
			}
			if n := len(w.events(b, "Orders")); n > 0 {
				t.Errorf("%d events in a bucket that is away", n)
			}
			b.away.Store(false)
			r.hastenUntil("the archive has everything", func() bool {
				s := r.fold("Orders")
				return s.Marks[checkpoint.SinkArchive].Seq >= s.LastFrame
			})
			lost := r.table("Orders").DeadLetters
			if letters != (lost > 0) {
				t.Errorf("%d dead letters", lost)
			}
			r.archivedOnce(b, "Orders", lost)
			if n := r.metric("tailrace_source_expired_records_total"); n < 70 || n >= r.metric("tailrace_source_records_total") {
				t.Errorf("%v records read were deletions by TTL", n)
			}
			r.settle()
			r.equal()
		})
	}
}

// TestRecoveryArchivesNothingTwice: three hours are archived when the log is lost, with the
// archive's stream. DynamoDB's records are read again, from the trim horizon on.
func TestRecoveryArchivesNothingTwice(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	b := w.archived()
	w.createExpiring("Orders")
	r := w.start("Orders")
	for hour := range 3 {
		w.expire("Orders", fmt.Sprint("hour", hour), 20, 20)
		r.archivedOnce(b, "Orders", 0)
		w.clock.Advance(time.Hour)
	}
	r.hastenUntil("a manifest closes two hours", func() bool { return r.table("Orders").Archive.Head.N > 0 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.loseVolume()
	w.expire("Orders", "lost", 20, 20)
	w.recover("Orders")
	r = w.restart("Orders")
	r.recovered()
	w.expire("Orders", "later", 20, 20)
	r.archivedOnce(b, "Orders", 0)
	w.clock.Advance(2 * time.Hour)
	r.hastenUntil("every hour is closed", func() bool {
		a := r.table("Orders").Archive
		return a != nil && a.Waiting == 0 && a.Closed >= w.clock.Now().Add(-90*time.Minute).UTC().Format(time.RFC3339)
	})
	head := r.table("Orders").Archive.Head
	rep, err := manifest.Verify(t.Context(), b, "Orders", manifest.Options{
		Head: &head, Depth: manifest.Quick, Read: footerOf,
	})
	if err != nil || rep.Verdict == manifest.Different {
		t.Errorf("archive verify: %+v, %v", rep, err)
	}
	r.settle()
	r.equal()
}

func footerOf(_ context.Context, r io.ReaderAt, size int64, _ bool) (*manifest.Content, error) {
	foot, err := object.ReadFooter(r, size)
	if err != nil {
		return nil, err
	}
	return &manifest.Content{Part: foot.Part, Coverage: foot.Coverage, Events: foot.Events, Digest: foot.Digest}, nil
}

// TestUpgradeWithUnarchivedEvents: a build without a stream for the archive has left the archive's
// mark behind a thousand deletions. They are archived, once, and those before the mark are not
// archived again.
func TestUpgradeWithUnarchivedEvents(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.createExpiring("Orders")
	b := w.archived()
	srv := startNATS(t)
	limit := int64(8 << 20)
	w.qopts = func(o *queue.Options) {
		o.Dir, o.URL, o.MaxBytes, o.LettersMaxBytes, o.ArchiveMaxBytes = "", srv.url, 64<<20, 16<<20, limit
	}
	archive := w.archive
	w.archive = &archiving.Place{Subject: &flakyArchive{events: map[string]int{}}}
	r := w.start("Orders")
	w.expire("Orders", "before", 50, 20)
	r.settle()
	before := w.expired("Orders")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	srv.deleteArchive() // the older build has no such stream, and there is no room for one
	limit = 1 << 60
	r = w.restart("Orders")
	w.expire("Orders", "after", 1000, 20)
	r.hastenUntil("Bigtable has everything, and the archive stands", func() bool {
		s := r.fold("Orders")
		return len(w.expired("Orders")) == 1050 && len(r.stored("Orders")) == 0 && s.Marks["bigtable"].Seq >= s.LastFrame &&
			len(r.table("Orders").Halts) > 0
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	w.archive, limit = archive, 8<<20
	r = w.restart("Orders")
	want := w.expired("Orders")
	r.hastenUntil("all are archived", func() bool { return len(w.events(b, "Orders")) >= len(want)-len(before) })
	got := w.events(b, "Orders")
	for at := range want {
		if n := got[at]; before[at] && n != 0 || !before[at] && n != 1 {
			t.Errorf("the deletion %s is archived %d times; was it before: %v", at, n, before[at])
		}
	}
	if len(got) != 1000 {
		t.Errorf("%d events", len(got))
	}
	r.settle()
	r.equal()
}

// deleteArchive deletes the streams of archives.
func (s *natsServer) deleteArchive() {
	s.t.Helper()
	nc, err := nats.Connect(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	names := js.StreamNames(s.t.Context())
	for name := range names.Name() {
		if !strings.HasSuffix(name, "_archive") {
			continue
		}
		if err := js.DeleteStream(s.t.Context(), name); err != nil {
			s.t.Fatal(err)
		}
	}
	if names.Err() != nil {
		s.t.Fatal(names.Err())
	}
}
