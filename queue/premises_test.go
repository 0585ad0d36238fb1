package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Each setting that is not as it must be is named with what mends it; those under which an
// acknowledged entry may be lost stop writing. The streams that this package makes have none.
func TestPremisesOfStreams(t *testing.T) {
	q := embeddedQueue(t)
	l := createLog(t, q)
	ctx := testContext(t)
	if _, err := l.DeadLetters(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Requests(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Archive(ctx); err != nil {
		t.Fatal(err)
	}
	if found, err := l.Premises(ctx); err != nil || len(found) > 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	good := l.stream.CachedInfo().Config
	for code, x := range map[string]struct {
		spoil  func(*jetstream.StreamConfig)
		unsafe bool
		mend   string
	}{
		"stream_storage": {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, true, "again"},
		"stream_persist_mode": {
			func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, true, "again",
		},
		"stream_mirror":    {func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{} }, true, "again"},
		"stream_retention": {func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, true, "again"},
		"stream_discard":   {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, true, "--discard=new"},
		"stream_max_age":   {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, true, "--max-age=0s"},
		"stream_max_msgs_per_subject": {
			func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, true, "--max-msgs-per-subject=-1",
		},
		"stream_no_ack":      {func(c *jetstream.StreamConfig) { c.NoAck = true }, true, "--ack"},
		"stream_max_msgs":    {func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 }, false, "--max-msgs=-1"},
		"stream_sealed":      {func(c *jetstream.StreamConfig) { c.Sealed = true }, false, "again"},
		"stream_deny_delete": {func(c *jetstream.StreamConfig) { c.DenyDelete = false }, false, "--deny-delete"},
		"stream_sources": {
			func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{}} }, false, "again",
		},
	} {
		cfg := good
		x.spoil(&cfg)
		found := JudgePremises(&cfg, streamKind{again: "again"})
		if len(found) != 1 || found[0].Code != code || found[0].Unsafe != x.unsafe ||
			!strings.Contains(found[0].Mend, x.mend) {
			t.Errorf("%s: %+v", code, found)
		}
	}
	cfg := good
	if found := JudgePremises(&cfg, streamKind{keyed: true}); len(found) != 1 || found[0].Wanted != "1" {
		t.Errorf("%+v", found)
	}
	cfg.MaxAge = time.Hour
	if _, err := q.conn.JS.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	if found, err := l.Premises(ctx); err != nil || found.Unsafe() == nil || found.Unsafe().Code != "stream_max_age" {
		t.Errorf("%+v, %v", found, err)
	}
}
