package cutover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Refused lists the reasons why a cutover cannot continue.
type Refused struct {
	Reasons []string
	Undone  bool // the fence was taken away meanwhile, in whole or in part
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the cutover is refused: %s", joined(r.Reasons))
}

func refuse(format string, args ...any) error {
	return &Refused{Reasons: []string{fmt.Sprintf(format, args...)}}
}

func joined(reasons []string) string { return strings.Join(reasons, "; ") }

// check refuses a cutover of tables that are not ready, or that have an open copy, resync or
// request. A fence of a cutover is not red.
func (c *Cutover) check(ctx context.Context) error {
	var tables []config.Table
	for _, t := range c.pair.Tables {
		tables = append(tables, t.Table)
	}
	if err := c.awaitLife(ctx); err != nil {
		return err
	}
	st, err := control.NewObserver(c.cfg, tables, c.clients).Status(ctx)
	if err != nil {
		return err
	}
	reasons := st.Reasons
	logs, err := c.unowned(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		behind := func(t status.Table) bool { return t.Source == l.Table && t.BehindFence != nil }
		if way := wayOut(l.State); slices.ContainsFunc(st.Tables, behind) && !slices.Contains(reasons, way) {
			reasons = append(reasons, way)
		}
	}
	for _, l := range logs {
		open, err := openRequest(ctx, l)
		if err != nil {
			return err
		}
		if open {
			reasons = append(reasons, l.Table+": a repair or a retry of dead letters is not done yet")
		}
	}
	if len(reasons) > 0 {
		return &Refused{Reasons: reasons}
	}
	return nil
}

// nameNotCopied prints which tables held items at their first start that nothing has copied: unless
// they came into Bigtable otherwise, the comparison will refuse them when the writers are stopped.
func (c *Cutover) nameNotCopied(ctx context.Context) error {
	logs, err := c.logs(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		if n := l.State.NotCopied(); n > 0 {
			c.Say("About %d items of %s were there before its log began, and nothing has copied them: where they are missing, "+
				"the cutover is refused. `replicator repair --table %s` copies them while the writers go on.", n, l.Table, l.Table)
		}
	}
	return nil
}

// awaitLife waits while no table's owner has given a sign of life, as just after one was killed:
// another process takes over. If none does, the check that follows refuses.
func (c *Cutover) awaitLife(ctx context.Context) error {
	once, cancel := context.WithTimeout(ctx, protocol.SilentAfter(time.Duration(c.cfg.Protocol.ClaimTTL)))
	defer cancel()
	err := c.poll(once, func(logs []*control.Log) bool {
		return !slices.ContainsFunc(logs, func(l *control.Log) bool { return c.pair.Away(l.Table, l.State) })
	})
	if once.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// otherTables lists tables of the target that are not named, and named tables that do not write to
// the target. A table that is not in this configuration may still be written by a replicator with
// another configuration.
func (c *Cutover) otherTables(ctx context.Context) (reasons []string, err error) {
	for _, t := range c.pair.Tables {
		if !slices.Contains(c.Tables, t.Source) {
			reasons = append(reasons,
				fmt.Sprintf("table %s writes to %s, too: name all tables of the target", t.Source, t.Target))
		}
	}
	for _, name := range c.Tables {
		if c.pair.Index(name) < 0 {
			reasons = append(reasons, fmt.Sprintf("table %s does not write to %s: cut it over by itself", name, c.pair.Target))
		}
	}
	others, err := c.otherWriters(ctx)
	return append(reasons, others...), err
}

// otherWriters lists tables that have rows in the target and are not in this configuration. Tables
// of this pipeline would be left out of the comparison. The replicator of another pipeline, which
// an adopted target may have, may write behind the fence unless its tables are fenced, too.
//
// Rule 12: behind a fence nothing is written to Bigtable.
func (c *Cutover) otherWriters(ctx context.Context) (reasons []string, err error) {
	err = c.pair.Sink().StatesOf(ctx, c.pair.Target, func(s *bigtable.State) error {
		id := &s.Identity
		switch ours := id.Pipeline == c.cfg.Pipeline; {
		case ours && c.pair.Index(id.Table) < 0:
			reasons = append(reasons, fmt.Sprintf("table %s has rows in %s, too, and is not in this configuration: add it, or "+
				"`replicator table retire --table %s`", id.Table, c.pair.Target, id.Table))
		case !ours && s.Fenced == nil:
			reasons = append(reasons, fmt.Sprintf("table %s of pipeline %q has rows in %s, too: stop that pipeline, take the "+
				"table out of its configuration, and with that `replicator table retire --table %s`", id.Table, id.Pipeline,
				c.pair.Target, id.Table))
		}
		return nil
	})
	if err != nil {
		return nil, bigtable.Explain(fmt.Errorf("look for other tables of %s: %w", c.pair.Target, err))
	}
	return reasons, nil
}

// openRequest reports whether a request of a command waits for the owner of a table.
func openRequest(ctx context.Context, l *control.Log) (bool, error) {
	s, err := l.Log.ExistingRequests(ctx)
	if s == nil || err != nil {
		return false, err
	}
	chunk, err := s.Next(ctx, time.Time{}) // no outcome is too old for that time, so none is removed
	return chunk != nil, err
}

// poll folds the logs until the fact holds, and requests signs of life from the owners meanwhile.
// It returns an error when the logs cannot be read for too long, or when no process has owned a
// table for that time.
func (c *Cutover) poll(ctx context.Context, fact func([]*control.Log) bool) error {
	var missing, stuck time.Time // since when the logs cannot be read, and since when there is an obstacle
	for looks := 0; ; looks++ {
		began := time.Now()
		logs, err := c.logs(ctx)
		switch {
		case err == nil && fact(logs):
			return nil
		case err == nil:
			missing = time.Time{}
			if stuck, err = c.stuckSince(stuck, logs); err != nil {
				return err
			}
			if looks%4 == 0 {
				for _, l := range logs {
					_ = l.Log.RequestBeat() // if this fails, the next one comes on its timer
				}
			}
		case missing.IsZero() && time.Since(began) < protocol.Restart:
			missing = began
		case missing.IsZero() || time.Since(missing) > protocol.Restart:
			return failure.With(failure.Unready,
				"see `replicator status`; the same command goes on where this one stopped", err)
		}
		if err := failure.Pause(ctx, control.Period); err != nil {
			return err
		}
	}
}

// stuckSince returns since when there is an obstacle, zero for none, and the obstacle when it has
// been there for so long that no other owner is about to take over.
func (c *Cutover) stuckSince(since time.Time, logs []*control.Log) (time.Time, error) {
	err := c.obstacle(logs)
	switch {
	case err == nil:
		return time.Time{}, nil
	case since.IsZero():
		return time.Now(), nil
	case time.Since(since) > protocol.TakeoverPatience(time.Duration(c.cfg.Protocol.ClaimTTL)):
		return since, err
	}
	return since, nil
}

func utc(t change.Millis) time.Time { return t.Time().UTC() }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
