package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// A reader of the table may see what was committed until the reply was sent: the proof covers the
// response, not the request.
func TestProofCoversWhatWasWrittenUntilTheResponse(t *testing.T) {
	x := newTable(t, nil)
	l := x.begin()
	l.settle()
	x.Bigtable.Faults.Latency(50*time.Millisecond, 0)
	for i := range 5 {
		l.Clock.Advance(time.Second)
		l.Put("Orders", "p", string(rune('a'+i)), `"v":{"N":"1"}`)
		l.prove(change.MillisOf(l.Clock.Now()))
		l.equal() // at once: all of it is there
	}
}

// No tick and no idle poll stands between the moment that a proof waits for and its end.
func TestProofWaitsForNoTick(t *testing.T) {
	x := newTable(t, func(x *table) {
		x.mapping, x.idlePoll, x.periods.Mark, x.periods.Beat = plain, time.Hour, time.Hour, time.Hour
	})
	l := x.begin()
	for range 3 {
		l.settle()
	}
}

// A change that is read and not applied is not proved.
func TestProofWaitsForTheBigtableSink(t *testing.T) {
	x := newTable(t, nil)
	l := x.begin()
	l.settle()
	x.Bigtable.Faults.Outage(time.Hour)
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	through := change.MillisOf(l.Clock.Now())
	done := make(chan error, 1)
	go func() { done <- l.in.Prove(t.Context(), through) }()
	l.untilMoving("the proof waits for Bigtable", func() bool { return strings.Contains(l.in.Unproven(), "Bigtable") })
	if len(done) > 0 {
		t.Fatal("proved before the change was applied")
	}
	x.Bigtable.Faults.Recover()
	l.untilMoving("proved", func() bool { return len(done) > 0 })
	l.equal()
}

// slowArchive never takes anything.
type slowArchive struct{}

func (slowArchive) Publish(context.Context, archive.Message) error { return nil }

func (slowArchive) Store(ctx context.Context, _ []ledger.Record) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

const archived = `
families: {d: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attrs: "*", to: "d:{attr}"}]
  on_ttl_expiry: archive
`

// Only the Bigtable sink counts: an archive that is away for hours stops no copy.
func TestProofDoesNotWaitForTheArchive(t *testing.T) {
	x := newTable(t, func(x *table) { x.archive, x.mapping = slowArchive{}, archived })
	l := x.begin()
	l.settle()
	l.Put("Orders", "p", "a", `"v":{"N":"1"},"ttl":{"N":"1790000000"}`)
	l.expire()
	l.Put("Orders", "p", "b", `"v":{"N":"1"}`)
	l.settle()
	l.equal()
	if mark, _ := l.sinks[1].Acked(); mark.Seq >= l.writer.State().LastFrame {
		t.Error("the archive is not behind")
	}
}

// A shard that splits behind the proof's listing has children that it does not show. What they hold
// is not read.
func TestShardThatSplitAfterTheListingKeepsTheProofWaiting(t *testing.T) {
	x := newTable(t, nil)
	l := x.begin()
	l.settle()
	x.Stream.Faults().HideChildren(20 * time.Second)
	x.Stream.Rotate("Orders")
	for i := range 20 {
		l.Put("Orders", "p", string(rune('a'+i)), `"v":{"N":"1"}`)
	}
	l.prove(change.MillisOf(l.Clock.Now()) + 1000)
	l.equal()
}

// While the stream is disabled nothing can be proved: what is written is in no stream.
func TestDisabledStreamProvesNothing(t *testing.T) {
	x := newTable(t, nil)
	l := x.begin()
	l.settle()
	l.Call("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.in.Prove(ctx, change.MillisOf(l.Clock.Now())+1000) }()
	l.untilMoving("the proof waits for the stream", func() bool { return strings.Contains(l.in.Unproven(), "disabled") })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("proved although the stream is disabled: %v", err)
	}
	if why := l.in.Unproven(); why != "" {
		t.Errorf("nobody waits, and the reason is still %q", why)
	}
}

// The service's time may be an hour ahead of what this process believes: the machine was suspended,
// and no shard is due to be read. A proof must not wait for that hour.
func TestProofAfterTheServicesClockJumped(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping, x.idlePoll = plain, time.Minute; x.periods.Describe = time.Hour })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	for range 3 {
		l.Clock.Advance(time.Hour)
		l.prove(change.MillisOf(l.Clock.Now()))
	}
	l.equal()
}
