package bigtable

import (
	"context"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
)

const (
	// maxVagueTries is how often a call is sent that fails each time with a code that explains nothing.
	maxVagueTries = 12
	// warnEvery bounds the log lines of an outage, which fails every lane at once.
	warnEvery = 10 * time.Second
)

// deliver sends a call until it is answered, refused or ctx ends. version is 0 for calls that the tombstone gate
// does not concern.
//
// The client library never repeats conditional mutations; ours may be repeated after any doubt, for if an
// attempt did arrive, the next one finds its version.
func (t *table) deliver(ctx context.Context, r *request, version int64) error {
	err := t.send(ctx, r, version)
	if err == nil || Classify(err) != failure.Transient {
		return err
	}
	first, reason, vagueSoFar := true, err, 0
	attempt := func() (struct{}, error) {
		if !first {
			t.metrics.retries.Inc()
			err = t.send(ctx, r, version)
		}
		first = false
		if Classify(err) == failure.Transient {
			reason = err
		}
		if !isVague(status.Code(err)) {
			vagueSoFar = 0
		} else if vagueSoFar++; vagueSoFar >= maxVagueTries {
			err = &stuckError{tries: vagueSoFar, last: err}
		}
		return struct{}{}, retryError(err)
	}
	notify := func(_ error, next time.Duration) { t.warn(err, next) }
	_, ended := backoff.Retry(ctx, attempt, backoff.WithBackOff(t.client.newBackOff()), backoff.WithMaxElapsedTime(0), backoff.WithNotify(notify))
	if ended != nil && ctx.Err() != nil {
		return interrupted(ctx, reason)
	}
	return ended
}

// send makes one attempt, within the concurrency limit and under its own deadline.
func (t *table) send(ctx context.Context, r *request, version int64) error {
	if err := t.limit.acquire(ctx); err != nil {
		return interrupted(ctx, err)
	}
	t.metrics.inFlight.Inc()
	start := time.Now()
	err := t.attempt(ctx, r, version)
	took := time.Since(start)
	class := Classify(err)
	t.metrics.bound.Set(t.limit.release(took, loadSignalOf(err, class)))
	t.metrics.inFlight.Dec()
	t.metrics.seconds.Observe(took.Seconds())
	if err != nil {
		t.metrics.outcomes[class].Inc()
	}
	return err
}

func (t *table) attempt(ctx context.Context, r *request, version int64) error {
	o := &t.client.opt
	if version != 0 && TooOld(version, o.Now(), o.Tombstones) {
		return rejectf(CodeTooOld, "the change is older than %v less %v: its tombstone may be gone", o.Tombstones, gateMargin)
	}
	call, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, t.headers), o.Timeout)
	defer cancel()
	r.table, r.profile = t.name, o.AppProfile
	err := t.client.conn.Invoke(call, btpb.Bigtable_CheckAndMutateRow_FullMethodName, r, r)
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	t.client.report(t.short, err)
	return err
}

func loadSignalOf(err error, class failure.Class) loadSignal {
	switch {
	case class == failure.None:
		return quick
	case class == failure.Transient && !isVague(status.Code(err)) && status.Code(err) != codes.Aborted:
		return overload
	}
	return neutral
}

// warn reports that a call is repeated: one line per table and interval, and only the error's code, for its
// text may quote keys.
func (t *table) warn(err error, next time.Duration) {
	last, now := t.warned.Load(), time.Now().UnixNano()
	if now-last < int64(warnEvery) || !t.warned.CompareAndSwap(last, now) {
		return
	}
	t.client.log.Warn("bigtable call failed and is sent again", zap.String("table", t.short),
		zap.Stringer("code", status.Code(err)), zap.Duration("after", next))
}
