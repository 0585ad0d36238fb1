package bigtable

import (
	"context"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

const (
	// maxVagueTries is how often a call is sent that fails each time with a vague code.
	maxVagueTries = 12
	// missingPause is the time before a table, family or instance that is not found is asked for
	// again.
	missingPause = 250 * time.Millisecond
	// warnEvery is the time between two log lines about a table: an outage makes all lanes fail at
	// once.
	warnEvery = 10 * time.Second
	// confirmAfter is the time between a refusal and the second question. If it is ten times
	// shorter, one moment of trouble may answer both; if it is ten times longer, a lane makes at
	// most one dead letter in two seconds.
	confirmAfter = 200 * time.Millisecond
)

// deliver sends a call until it is answered or refused for good, or ctx ends. version is 0 for
// calls that do not pass the tombstone gate.
//
// Rule 13: a refusal by the service counts only if the call is refused once more when it is sent
// again. What was refused once and then taken is no dead letter.
func (t *table) deliver(ctx context.Context, r *request, version change.Version) error {
	err := t.answer(ctx, r, version)
	if !refusedByService(err) {
		return err
	}
	if failure.Pause(ctx, confirmAfter) != nil {
		return interrupted(ctx, err)
	}
	t.metrics.retries.Inc()
	return t.answer(ctx, r, version)
}

// answer sends a call until it is answered or refused, or ctx ends.
//
// Google's client library never repeats conditional mutations. Ours may be repeated when the
// outcome is unknown, because an attempt finds the version that an earlier one has written.
func (t *table) answer(ctx context.Context, r *request, version change.Version) error {
	err := askTwice(ctx, func() error { return t.send(ctx, r, version) })
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
	_, ended := backoff.Retry(ctx, attempt, backoff.WithBackOff(t.client.newBackOff()), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(notify))
	if ended != nil && ctx.Err() != nil {
		return interrupted(ctx, reason)
	}
	return ended
}

// askTwice repeats a call that fails because a table, family or instance does not exist.
//
// Rule 13: one such answer proves nothing, for a write or for a read.
func askTwice(ctx context.Context, ask func() error) error {
	return readTwice(ctx, func() (bool, error) { return false, ask() })
}

// readTwice is askTwice for a read that reports whether it has taken a row.
func readTwice(ctx context.Context, read func() (some bool, err error)) error {
	some, err := read()
	if !some && Classify(err) == failure.Missing && failure.Pause(ctx, missingPause) == nil {
		_, err = read()
	}
	return err
}

// send makes one attempt within the concurrency limit, and records it in limit and metrics.
func (t *table) send(ctx context.Context, r *request, version change.Version) error {
	if err := t.limit.Acquire(ctx, r.of); err != nil {
		return interrupted(ctx, err)
	}
	t.metrics.inFlight.Inc()
	t.used.writes.Add(1)
	start := time.Now()
	ctx, ended := beginSpan(ctx, t.short)
	err := t.attempt(ctx, r, version)
	took := time.Since(start)
	class := Classify(err)
	ended(err)
	bound := t.limit.Release(r.of, took, loadSignalOf(err, class), t.client.cpu.Short())
	t.metrics.bound.Set(bound)
	t.client.follow(t, bound)
	t.metrics.inFlight.Dec()
	t.metrics.seconds.Observe(took.Seconds())
	if err != nil {
		t.metrics.outcomes[class].Inc()
	}
	return err
}

// attempt makes one call with its own deadline, unless the tombstone gate rejects the version.
func (t *table) attempt(ctx context.Context, r *request, version change.Version) error {
	o := &t.client.opt
	if version != 0 && TooOld(version, o.Now(), o.Tombstones) {
		return rejectf(CodeTooOld, "the change is older than %v less %v: its tombstone may be gone", o.Tombstones, gateMargin)
	}
	allowed := look{t.client.watch, t.client.watch.count()}
	if r.fresh != nil {
		if err := r.fresh(); err != nil {
			return &StaleError{err}
		}
	}
	call, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, t.headers[r.of]), o.Timeout)
	defer cancel()
	r.table, r.profile = t.name, o.profile(r.of)
	err := t.client.conn.Invoke(call, btpb.Bigtable_CheckAndMutateRow_FullMethodName, r, r,
		grpc.PerRPCCredentials(&allowed))
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	t.client.report(t.short, err)
	return err
}

// loadSignalOf returns what the outcome of a call shows about the service's load.
func loadSignalOf(err error, class failure.Class) loadSignal {
	switch {
	case class == failure.None:
		return loadQuick
	case class == failure.Transient && !isVague(status.Code(err)) && status.Code(err) != codes.Aborted:
		return loadOverload
	}
	return loadNeutral
}

// warn logs that a call is repeated, at most once in warnEvery for a table.
func (t *table) warn(err error, next time.Duration) {
	last, now := t.warned.Load(), time.Now().UnixNano()
	if now-last < int64(warnEvery) || !t.warned.CompareAndSwap(last, now) {
		return
	}
	t.client.log.Warn("bigtable call failed and is sent again", zap.String("table", t.short),
		zap.Stringer("code", status.Code(err)), zap.String("message", messageOf(err)), zap.Duration("after", next))
}

// messageOf returns the message of an error about the connection, the service or a permission.
// Others may quote keys, and return nothing.
func messageOf(err error) string {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied:
		return shortened(status.Convert(err).Message())
	}
	return ""
}

// shortened returns the begin of a message.
func shortened(message string) string {
	const longest = 300
	if len(message) <= longest {
		return message
	}
	return strings.ToValidUTF8(message[:longest], "") + " …"
}
