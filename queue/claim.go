package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// ClaimOptions say who claims a log, and how long it waits.
type ClaimOptions struct {
	Owner string // name and a random id per process start: no two processes have the same
	// TTL is how long nothing must have been appended before another owner may claim a log that was not released. Owners
	// beat every TTL/3. 0 = 15 s.
	TTL time.Duration
	// Alone says that no other process can own the log, because this one holds the lock of the store: whoever owned it
	// is dead, and the claim does not wait for TTL.
	Alone bool
	// Life and Identity are stored in the claim. The log's own life is kept when it is higher.
	Life     uint64
	Identity *checkpoint.Identity
}

// Claim makes the caller the owner of the log. It waits until the log was never owned, its owner released it, or
// nothing was appended to it for TTL. That time is measured on the monotonic clock of this process, and without a break
// in looking at the log: clocks of two machines are never compared. When two processes claim at once, the server
// refuses the second. When ctx ends first the error is ErrHeld and names the owner.
func (l *Log) Claim(ctx context.Context, o ClaimOptions) (*Writer, error) {
	set(&o.TTL, defaultTTL)
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	c := &claimer{l: l, o: o, nonce: nonce}
	for {
		w, err := c.try(ctx)
		if w != nil {
			l.configure(ctx, w.folded.snapshot)
			return w, nil
		}
		if err != nil && !conn.Transient(err) && !errors.Is(err, ErrOutcomeUnknown) {
			return nil, fmt.Errorf("claim log of %s: %w", l.table, err)
		}
		if werr := failure.Pause(ctx, min(o.TTL/10, time.Second)); werr != nil {
			return nil, fmt.Errorf("claim log of %s: %w: %s: %w", l.table, ErrHeld, c.holder, errors.Join(werr, err))
		}
	}
}

// claimer waits until a log may be claimed, and claims it.
type claimer struct {
	l      *Log
	o      ClaimOptions
	nonce  checkpoint.Nonce
	holder string // owner of the log at the last fold

	seq            uint64    // the log's newest sequence at the last look
	unchangedSince time.Time // since when seq was seen without a break; up to TTL/3 later, so that not all claim at once
	lastLook       time.Time // when the log was last looked at
	connection     uint64    // the number of the connection then
	claimSent      bool      // a claim was sent, which may have been stored
}

// try claims the log if that is allowed now. It returns nil, nil while the log may not be claimed yet.
func (c *claimer) try(ctx context.Context) (*Writer, error) {
	info, err := c.l.Info(ctx)
	if err != nil {
		return nil, err
	}
	c.noteLook()
	if c.unchangedSince.IsZero() || info.Last != c.seq {
		first := c.unchangedSince.IsZero()
		c.seq, c.unchangedSince = info.Last, time.Now().Add(rand.N(c.o.TTL/15+1))
		if !first && !c.o.Alone && !c.claimSent && !released(c.l.NewestClaim(ctx)) {
			return nil, nil // the owner is appending: no need for an expensive fold
		}
	} else if !c.o.Alone && !c.claimSent && c.holder != "" && time.Since(c.unchangedSince) < c.o.TTL {
		return nil, nil
	}
	silent := time.Since(c.unchangedSince) >= c.o.TTL // a fold may take long, and is no look
	f, err := c.l.fold(ctx)
	if err != nil {
		return nil, err
	}
	s := f.state
	c.holder = s.Owner
	switch {
	case c.claimSent && s.Nonce == c.nonce:
		return c.newWriter(f), nil // an earlier claim of this claimer was stored, only its acknowledgement was lost
	case s.Epoch == 0 || s.Released || c.o.Alone:
	case s.Seq == c.seq && silent && c.connection == c.l.q.conn.Connections.Load():
	default:
		return nil, nil
	}
	return c.appendClaim(ctx, f)
}

// noteLook records that the log was looked at. Silence counts only while it is observed: after a break, because the
// server or this process was away, the owner may not have come back yet to append a beat. So the wait begins anew, and
// with a random part, as all members that wait for the log see the same break.
func (c *claimer) noteLook() {
	now, connection := time.Now(), c.l.q.conn.Connections.Load()
	if !c.unchangedSince.IsZero() && (connection != c.connection || now.Sub(c.lastLook) > max(c.o.TTL/5, time.Second)) {
		c.unchangedSince = now.Add(rand.N(c.o.TTL/3 + 1))
	}
	c.lastLook, c.connection = now, connection
}

// NewestClaim returns the newest claim or release; nil if it cannot be had. It is one small message, however long the
// log is.
func (l *Log) NewestClaim(ctx context.Context) *checkpoint.Entry {
	m, err := l.newest(ctx, l.subject.claim)
	if err != nil {
		return nil
	}
	e, _ := checkpoint.Decode(m.Data)
	return e
}

func released(e *checkpoint.Entry) bool { return e != nil && e.Kind == checkpoint.KindRelease }

// appendClaim appends the claim after what was folded.
func (c *claimer) appendClaim(ctx context.Context, f *folded) (*Writer, error) {
	c.l.raiseLimit(ctx, f.info.Bytes, f.snapshot) // in a full log not even a claim would fit
	w := c.newWriter(f)
	w.epoch++
	c.claimSent = true
	body := &checkpoint.Claim{Owner: c.o.Owner, Life: max(c.o.Life, f.state.Life), Identity: c.o.Identity}
	if f.state.Epoch == 0 {
		body.Format = checkpoint.Format // a new log begins at the newest format
	}
	if _, err := w.append(ctx, body, nil); err != nil {
		return nil, err
	}
	c.l.logTruncation(ctx, f.state)
	c.l.log.Info("log claimed",
		zap.String("owner", c.o.Owner), zap.Uint64("epoch", w.epoch), zap.Uint64("seq", f.state.Seq))
	return w, nil
}

// newWriter returns a writer that appends after what was folded.
func (c *claimer) newWriter(f *folded) *Writer {
	now := time.Now()
	w := &Writer{
		l: c.l, ttl: c.o.TTL, owner: c.o.Owner, epoch: f.state.Epoch, nonce: c.nonce, folded: f, lastReport: now,
	}
	w.lastSent.Store(&now)
	return w
}
