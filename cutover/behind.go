package cutover

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// behind is what the log of one table holds behind the fence.
type behind struct {
	fence   uint64            // entry of the fence that was seen first
	mark    checkpoint.Mark   // up to which the log was looked at
	expired map[string][]byte // items deleted by TTL, by canonical key, as they were
}

// maxExpired bounds the items that are kept in memory.
const maxExpired = 200_000

// lookBehind looks at the changes behind the fences. Deletions by TTL are none of an application:
// their items are compared as they were before. Any other change forbids the certificate.
func (c *Cutover) lookBehind(ctx context.Context) (logs []*control.Log, err error) {
	if logs, err = c.logs(ctx); err != nil {
		return nil, err
	}
	for i, l := range logs {
		if err := c.lookBehindOf(ctx, i, l); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

// lookBehindOf looks behind the fence of table number i.
func (c *Cutover) lookBehindOf(ctx context.Context, i int, l *control.Log) error {
	b := &c.behind[i]
	if err := b.stands(c.id, l); err != nil {
		return err
	}
	walk := queue.Walk{Log: l.Log, After: b.mark}
	if b.mark.Seq == 0 {
		walk.From = b.fence
	}
	if b.expired == nil {
		b.expired = map[string][]byte{}
	}
	others, hashes := 0, []string(nil)
	mark, err := walk.Changes(ctx, func(x *queue.WalkedChange) error {
		if !x.TTL {
			others++
			if hash := change.HashText(x.KeyHash); len(hashes) < mostHashes && !slices.Contains(hashes, hash) {
				hashes = append(hashes, hash)
			}
			return nil
		}
		key, err := x.Key(nil, c.pair.Tables[i].Info.Schema)
		if err != nil {
			return err
		}
		if len(b.expired) == maxExpired {
			return refuse("TTL has deleted more than %d items of %s behind the fence: switch it off", maxExpired, l.Table)
		}
		b.expired[string(key)] = bytes.Clone(x.Old)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look behind the fence of %s: %w", l.Table, err)
	}
	b.mark = mark
	if others > 0 {
		return refuse("%s was written to behind the fence: Bigtable lacks %s that neither TTL nor a heartbeat made (key "+
			"hashes %s); %s", l.Table, english.Plural(others, "change", ""), strings.Join(hashes, ", "), wayOut(l.State))
	}
	return nil
}

// mostHashes is how many items of a log are named: enough to look for their writer.
const mostHashes = 10

// What to do about changes behind a fence: before the certificate, and behind it.
const (
	stopWriters = "stop the writers, `replicator cutover --undo`, and begin again"
	carryOver   = "the certificate was issued, so the application may have written the same rows: point the writers at " +
		"Bigtable, and carry these changes over by the application; only where it has written nothing yet, " + stopWriters
)

// wayOut returns what to do about changes behind the fence of a log.
func wayOut(s *checkpoint.State) string {
	if s.Fence != nil && s.Fence.Certified > 0 {
		return carryOver
	}
	return stopWriters
}

// stands refuses a log that no longer has the fence that was read first: rows may have been written
// behind it.
func (b *behind) stands(id string, l *control.Log) error {
	f := l.State.Fence
	if f == nil || f.ID != id || b.fence != 0 && b.fence != f.Seq {
		return undone(l.Table)
	}
	b.fence = f.Seq
	return nil
}

func undone(table string) error {
	return &Refused{Reasons: []string{"the fence of " + table + " was taken away meanwhile"}, Undone: true}
}

// readItems reads items as they are, and those that TTL has deleted behind the fence as they were.
func (c *Cutover) readItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	batch, err := c.pair.ReadItems(ctx, table, keys)
	if err != nil {
		return nil, err
	}
	expired := c.behind[c.pair.Index(table)].expired
	for i, key := range keys {
		if old, ok := expired[string(key)]; ok && batch.Items[i] == nil && len(old) > 0 {
			batch.Items[i] = old
		}
	}
	return batch, nil
}

func (c *Cutover) expired() (n int64) {
	for i := range c.behind {
		n += int64(len(c.behind[i].expired))
	}
	return n
}
