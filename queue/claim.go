package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

// ClaimOptions name the process that claims a log, and set how long it waits.
type ClaimOptions struct {
	Owner string // name and a random id per process start: no two processes have the same
	// TTL is how long nothing must have been appended before another owner may claim a log that was
	// not released. Owners beat every TTL/3. 0 = 15 s.
	TTL time.Duration
	// Alone means that no other process can own the log, because this one holds the lock of the
	// store: the earlier owner is dead, and the claim does not wait for TTL.
	Alone bool
	// Life and Identity are stored in the claim. Life applies to a log that has none: a later claim
	// keeps the log's own, so that a claim which only notes a refusal never moves an old log into a
	// later life.
	Life     uint64
	Identity *checkpoint.Identity
	Format   int // of a log that was never claimed; 0 = the newest
	// Group receives the messages of the log's owner; nil: there are none, and the claim polls the
	// log.
	Group *presence.Group
	// Turn returns how long this process leaves a free log to others; nil: not at all.
	Turn func() time.Duration
	// Grown is called when the log has grown, or a message of its owner has arrived.
	Grown func(owner string, epoch uint64)
}

// Claim makes the caller the owner of the log. It waits until the log was never owned, its owner
// released it, or its owner counts as gone (protocol.ClaimWatch). When two processes claim at once,
// the server refuses the second. When ctx ends first the error is ErrHeld and names the owner.
func (l *Log) Claim(ctx context.Context, o ClaimOptions) (*Writer, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	c := newClaimer(l, o, nonce)
	for {
		sight, changed := o.Group.Sight(l.table)
		w, err := c.try(ctx, sight)
		if w != nil {
			l.configure(ctx, w.folded.snapshot)
			return w, nil
		}
		if err != nil && !conn.Transient(err) && !errors.Is(err, ErrOutcomeUnknown) {
			return nil, fmt.Errorf("claim log of %s: %w", l.table, err)
		}
		if werr := failure.PauseUntil(ctx, c.pause(), changed); werr != nil {
			return nil, fmt.Errorf("claim log of %s: %w: %s: %w", l.table, ErrHeld, c.holder, errors.Join(werr, err))
		}
	}
}

// claimer waits until a log may be claimed, and claims it.
type claimer struct {
	l          *Log
	o          ClaimOptions
	nonce      checkpoint.Nonce
	watch      protocol.ClaimWatch
	holder     string              // owner of the log, at the last fold or as it was heard; "": none yet
	released   *checkpoint.Release // the log's newest claim or release is this one; nil: it is a claim
	halted     bool                // its owner released it because the table cannot run
	heard      bool                // the owner was heard at the last try
	unread     bool                // the log has grown, and its newest claim was not read yet
	claimSent  time.Time           // of the first claim, which may have been stored; zero: none was sent
	claimAfter uint64              // after which sequence the newest of them was to be stored
}

func newClaimer(l *Log, o ClaimOptions, nonce checkpoint.Nonce) *claimer {
	set(&o.TTL, defaultTTL)
	if o.Turn == nil {
		o.Turn = func() time.Duration { return 0 }
	}
	if o.Grown == nil {
		o.Grown = func(string, uint64) {}
	}
	return &claimer{l: l, o: o, nonce: nonce, watch: protocol.ClaimWatch{TTL: o.TTL, Random: rand.N[time.Duration]}}
}

// try claims the log if that is allowed now. It returns nil, nil while the log may not be claimed
// yet. sight is the owner's last report on the log; nil while there is none.
func (c *claimer) try(ctx context.Context, sight *presence.Sight) (*Writer, error) {
	lost := c.heard && sight == nil
	if c.heard = sight != nil; c.heard {
		c.watch.Heard(sight.At, sight.Seq, sight.Ago(), sight.Connection)
		if c.holder != "" && c.claimSent.IsZero() && c.released == nil {
			c.holder = sight.Member
			c.o.Grown(c.holder, sight.Epoch)
			if !c.watch.Look(time.Now()) {
				return nil, nil
			}
		}
	}
	info, err := c.l.Info(ctx)
	if err != nil {
		return nil, err
	}
	if c.watch.Saw(time.Now(), info.Last, c.l.q.conn.Connections.Load()) || lost || c.unread {
		c.readNewestClaim(ctx)
	}
	silent := c.watch.Silent(time.Now()) // a fold may take long, and is no look
	if c.holder != "" && !c.o.Alone && c.claimSent.IsZero() {
		owned := protocol.WatchedLog{Seq: info.Last, Owned: c.released == nil, Connection: c.l.q.conn.Connections.Load()}
		if !c.may(owned, c.released, silent) {
			return nil, nil // no need for an expensive fold
		}
	}
	if err := c.l.q.checkWritable(c.l.name); err != nil {
		return nil, err
	}
	f, err := c.l.fold(ctx)
	if err != nil {
		return nil, err
	}
	s := f.state
	c.holder, c.released = s.Owner, nil
	if s.Released {
		c.released = &checkpoint.Release{To: s.ReleasedTo}
	}
	c.halted = s.Released && s.AllHalts()[checkpoint.SinkPipeline] != nil
	owned := protocol.WatchedLog{Seq: s.Seq, Owned: s.Epoch > 0 && !s.Released, Connection: c.l.q.conn.Connections.Load()}
	switch {
	case !c.claimSent.IsZero() && s.Nonce == c.nonce:
		return c.newWriter(f), nil // an earlier claim of this claimer was stored, only its acknowledgement was lost
	case c.o.Alone || c.may(owned, c.released, silent):
		return c.appendClaim(ctx, f)
	case s.Seq > c.claimAfter:
		c.claimSent = time.Time{} // another message has taken its place
	}
	return nil, nil
}

// pause is how long to wait before the next try. While messages of the owner arrive, a try sends no
// request.
func (c *claimer) pause() time.Duration {
	if c.heard || c.released != nil {
		return c.watch.Pause()
	}
	return min(c.o.TTL/10, time.Second)
}

// haltedStays is for how long a halted log is left to its last owner, which tries again once a
// minute: what is wrong with a table is wrong with it everywhere.
const haltedStays = 2 * time.Minute

// may reports whether the watch permits a claim of the log.
func (c *claimer) may(l protocol.WatchedLog, released *checkpoint.Release, silent bool) bool {
	if released != nil {
		l.HandedTo = released.To
	}
	turn := c.o.Turn()
	if c.halted && c.o.Group.Hears(c.holder) {
		turn = max(turn, haltedStays)
	}
	return c.watch.May(c.o.Owner, l, silent, turn, time.Now())
}

// readNewestClaim reads the owner of the log after the log has grown. It is one small message,
// however long the log is.
func (c *claimer) readNewestClaim(ctx context.Context) {
	e := c.l.NewestClaim(ctx)
	if c.unread = e == nil; c.unread {
		return
	}
	c.released, _ = e.Body.(*checkpoint.Release)
	if claim, ok := e.Body.(*checkpoint.Claim); ok {
		c.halted = false
		c.holder = claim.Owner
		c.o.Grown(c.holder, e.Epoch)
	}
}

// NewestClaim returns the newest claim or release; nil if it cannot be had. It is one small
// message, however long the log is.
func (l *Log) NewestClaim(ctx context.Context) *checkpoint.Entry {
	m, err := l.newest(ctx, l.subject.Claim)
	if err != nil {
		return nil
	}
	e, _ := checkpoint.Decode(m.Data)
	return e
}

// appendClaim appends the claim after what was folded.
func (c *claimer) appendClaim(ctx context.Context, f *folded) (*Writer, error) {
	c.l.raiseLimit(ctx, f.info.Bytes, f.snapshot) // in a full log not even a claim would fit
	w := c.newWriter(f)
	w.epoch++
	c.claimSent, c.claimAfter = cmp.Or(c.claimSent, time.Now()), f.state.Seq
	body := &checkpoint.Claim{Owner: c.o.Owner, Life: cmp.Or(f.state.Life, c.o.Life), Identity: c.o.Identity,
		Reads: checkpoint.Format}
	if f.state.Epoch == 0 {
		body.Format = cmp.Or(c.o.Format, checkpoint.Format)
	}
	if _, err := w.append(ctx, body, nil); err != nil {
		return nil, err
	}
	c.l.logTruncation(ctx, f.state)
	c.l.log.Info("log claimed", zap.String("owner", w.owner), zap.Uint64("epoch", w.epoch), zap.Uint64("seq", w.lastAcked))
	return w, nil
}

// newWriter returns a writer that appends after what was folded, with a claim as old as it may be
// (Rule 12).
func (c *claimer) newWriter(f *folded) *Writer {
	now := cmp.Or(c.claimSent, time.Now())
	w := &Writer{
		l: c.l, ttl: c.o.TTL, owner: c.o.Owner, epoch: f.state.Epoch, nonce: c.nonce, folded: f, lastReport: now,
	}
	w.lastSent.Store(&now)
	w.lastSeq.Store(f.state.Seq)
	w.changes.Store(f.state.LastFrame)
	return w
}
