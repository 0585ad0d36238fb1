package cutover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/failure"
)

// Options of a cutover.
type Options struct {
	Tables        []string // all source tables of one target
	Quiet         time.Duration
	Full          bool // compare all items behind the fence, whatever is kept
	AcceptForeign bool
	AcceptAged    bool
	Accept        []string // columns:RULE/COLUMN
	Program       certificate.Program
	// Say prints a step as it happens.
	Say func(format string, args ...any)
}

// Cutover is one run of the command. Its zero value is not useful; use New.
type Cutover struct {
	Options
	cfg     *config.Config
	clients *clients.Clients
	pair    *pair.Pair
	// logs folds the logs of the running daemon, in the order of the pair's tables. unowned does so
	// also where none runs: until the logs hold a fence that the rows have, no daemon may stay.
	logs, unowned func(context.Context) ([]*control.Log, error)
	obstacle      func([]*control.Log) error // why nothing comes of waiting while the logs are like this; nil where it may

	folder string // of the files of a rehearsal; "": it is none

	id     string        // of the fence
	quiet  change.Millis // since when nothing was written; 0: the fence stood when the process began
	fenced change.Millis
	marks  map[string]checkpoint.Mark // by table: up to which the wait for quiet has looked
	behind []behind                   // by table
}

// New returns a cutover of the target of an open pair.
func New(cfg *config.Config, clients *clients.Clients, s *pair.Pair, o Options) *Cutover {
	return &Cutover{
		Options: o, cfg: cfg, clients: clients, pair: s, logs: s.Running, unowned: s.Logs,
		obstacle: s.Obstacle, behind: make([]behind, len(s.Tables)),
	}
}

// Fence returns the id of the fence that Run has raised, in whole or in part, or has found; "" for
// none.
func (c *Cutover) Fence() string { return c.id }

// Run makes the steps that are left, and returns the certificate. It may be interrupted at any
// step, and be run again, also by another process: what was reached is in rows and logs.
func (c *Cutover) Run(ctx context.Context) (*certificate.Certificate, error) {
	cert, err := c.run(ctx)
	return cert, c.interrupted(err)
}

// Certify notes in the logs that the certificate was issued: from then on the application may write
// to Bigtable, and `replicator status` reports it. It is refused if a change was read behind the
// fence after the certificate's last look. Then the certificate must not be used.
func (c *Cutover) Certify(ctx context.Context) error {
	logs, err := c.unowned(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		_, err := l.Append(ctx, "note of the certificate", checkpoint.Control{Certify: &checkpoint.Certify{ID: c.id}})
		if fence := (*checkpoint.FenceError)(nil); errors.As(err, &fence) {
			return refuse("%s: %s; %s", l.Table, fence.What, stopWriters)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// interrupted adds to the error of an interruption that the fence stays, if this process has found
// or raised one: Bigtable falls behind until the cutover goes on. Before the fence nothing has
// changed. Other errors are returned unchanged.
func (c *Cutover) interrupted(err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case c.id == "":
		return failure.With(failure.None,
			"this command has raised no fence, and changed nothing; the same command begins again", err)
	}
	return failure.With(failure.None, fmt.Sprintf("the fence of cutover %s stays, and nothing "+
		"is written to Bigtable: the same command goes on to the certificate, `replicator cutover --undo` takes the fence "+
		"away", c.id), err)
}

func (c *Cutover) run(ctx context.Context) (*certificate.Certificate, error) {
	// Times of this clock are stored and certified: the time of the fence, and the time since which
	// nothing was written.
	if _, err := c.pair.Ask(ctx); err != nil { // it is certain from here on
		return nil, err
	}
	if err := c.fence(ctx); err != nil {
		return nil, err
	}
	drained, err := c.drain(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := c.verify(ctx)
	if err != nil {
		return nil, err
	}
	// What was written while both sides were compared is behind the fence, and is looked for there.
	through, err := c.drain(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.verifyExpired(ctx, verified); err != nil {
		return nil, err
	}
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.issue(ctx, drained, verified, through)
}

// fence raises the fence once nothing is written any more. A fence that an earlier process has
// begun to raise is completed at once: until the logs hold it, no owner runs, and without owners no
// check passes.
func (c *Cutover) fence(ctx context.Context) error {
	if err := c.findFence(ctx); err != nil { // first, so that a refusal says whether one stands
		return err
	}
	reasons, err := c.cannot(ctx)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		return &Refused{Reasons: reasons}
	}
	if c.id != "" {
		if err := c.raise(ctx); err != nil {
			return err
		}
		return c.check(ctx)
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	if err := c.nameNotCopied(ctx); err != nil {
		return err
	}
	if err := c.awaitQuiet(ctx); err != nil {
		return err
	}
	if err := c.raise(ctx); err != nil {
		return err
	}
	return c.lookBeforeFence(ctx)
}

// cannot returns why the tables cannot be cut over as the options say, whatever state they are in.
func (c *Cutover) cannot(ctx context.Context) (reasons []string, err error) {
	if reasons, err = c.otherTables(ctx); err != nil {
		return nil, err
	}
	reasons = append(reasons, c.unknownWaivers()...)
	if names := c.ages(); len(names) > 0 && !c.AcceptAged {
		reasons = append(reasons, strings.Join(names, ", ")+": cells of families with max_age may have aged away in "+
			"Bigtable, and their items still have them (--accept-aged)")
	}
	return reasons, nil
}

// drain waits until the sinks stand at the fence, and until every shard was read past a time after
// it; then it looks at what is behind the fence. It returns that time.
func (c *Cutover) drain(ctx context.Context) (through change.Millis, err error) {
	c.Say("Draining: what was written before the fence is read and applied.")
	if err := c.awaitOwners(ctx); err != nil {
		return 0, err
	}
	now, err := c.pair.Ask(ctx)
	if err != nil {
		return 0, err
	}
	through = now + 1000 // Date is cut to seconds
	if err := c.pair.Prove(ctx, through); err != nil {
		return 0, err
	}
	_, err = c.lookBehind(ctx)
	return through, err
}

// awaitOwners waits until the owner of each table has appended an entry behind the fence: then it
// has read the fence, and whatever it was writing has ended. It refuses when the fence is taken
// away meanwhile, because no entry would come.
func (c *Cutover) awaitOwners(ctx context.Context) error {
	var gone error
	err := c.poll(ctx, func(logs []*control.Log) bool {
		for _, l := range logs {
			if f := l.State.Fence; f == nil || f.ID != c.id {
				gone = undone(l.Table)
				return true
			}
		}
		return !slices.ContainsFunc(logs, func(l *control.Log) bool {
			return l.State.Seq == l.State.Fence.Seq || !l.State.StandsAtFence()
		})
	})
	return cmp.Or(err, gone)
}
