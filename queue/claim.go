package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// ClaimOptions say who wants a log.
type ClaimOptions struct {
	Owner string // name and a random id per process start: two processes are never the same owner
	// TTL is how long a log must stand still before it may be taken from an owner that did not release it.
	// Owners beat every TTL/3. 0 = 15 s.
	TTL time.Duration
	// Life and Identity go into the claim. A Life below that of the log keeps the log's own.
	Life     uint64
	Identity *checkpoint.Identity
}

// Claim takes the log over. It waits until it may: the log was never owned, its owner released it, or its last
// sequence has not moved for TTL on our own monotonic clock, as far as it could be looked at; no two machines' clocks are compared. Two who
// claim at once are told apart by the server. When ctx ends first the error is ErrHeld and names the holder.
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

type claimer struct {
	l      *Log
	o      ClaimOptions
	nonce  checkpoint.Nonce
	holder string

	seq        uint64    // last sequence of the log when it was last seen to move
	stillSince time.Time // and when that was, later by the time in which nobody could look
	lastLook   time.Time // when the log was last looked at
	lookFailed bool      // a look has failed since
	claimSent  bool      // a claim was sent: it may have been stored
}

// try claims once if that is allowed now. Neither writer nor error means: not yet.
func (c *claimer) try(ctx context.Context) (*Writer, error) {
	info, err := c.l.Info(ctx)
	if err != nil {
		c.lookFailed = true
		return nil, err
	}
	c.noteLook()
	if c.stillSince.IsZero() || info.Last != c.seq {
		first := c.stillSince.IsZero()
		c.seq, c.stillSince = info.Last, time.Now()
		if !first && !c.claimSent && !c.ownerReleased(ctx) {
			return nil, nil // it moves: somebody lives. No need to fold it all
		}
	} else if !c.claimSent && c.holder != "" && time.Since(c.stillSince) < c.o.TTL {
		return nil, nil
	}
	f, err := c.l.fold(ctx)
	if err != nil {
		return nil, err
	}
	c.noteLook() // a fold may take long
	s := f.state
	c.holder = s.Owner
	switch {
	case c.claimSent && s.Nonce == c.nonce:
		return c.newWriter(f), nil // the claim whose acknowledgement was lost
	case s.Epoch == 0 || s.Released:
	case s.Seq == c.seq && time.Since(c.stillSince) >= c.o.TTL:
	default:
		return nil, nil
	}
	return c.appendClaim(ctx, f)
}

// looked takes note that the log was looked at. While nobody could look, because the server or we were away, nobody could
// beat either: that time does not count, so that an owner that lives has time to show it.
func (c *claimer) noteLook() {
	now := time.Now()
	if gap := now.Sub(c.lastLook); !c.stillSince.IsZero() && (c.lookFailed || gap > c.o.TTL) {
		c.stillSince = c.stillSince.Add(gap)
	}
	c.lastLook, c.lookFailed = now, false
}

// released looks at the newest claim or release: small, whatever else the log holds.
func (c *claimer) ownerReleased(ctx context.Context) bool {
	m, err := c.l.newest(ctx, c.l.subject.claim)
	if err != nil {
		return false
	}
	e, err := checkpoint.Decode(m.Data)
	return err == nil && e.Kind == checkpoint.KindRelease
}

func (c *claimer) appendClaim(ctx context.Context, f *folded) (*Writer, error) {
	c.l.raiseLimit(ctx, f.info.Bytes, f.snapshot) // a claim must fit before it can be made
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
	c.l.log.Info("log claimed", zap.String("owner", c.o.Owner), zap.Uint64("epoch", w.epoch), zap.Uint64("seq", f.state.Seq))
	return w, nil
}

func (c *claimer) newWriter(f *folded) *Writer {
	now := time.Now()
	return &Writer{l: c.l, ttl: c.o.TTL, owner: c.o.Owner, epoch: f.state.Epoch, nonce: c.nonce, folded: f, lastReport: now, lastSent: now}
}
