package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/queue"
)

// lull finds the longest time without a change in the last hour, as far as the logs still hold it:
// whether the writers pause by themselves, and when.
func (c *Cutover) lull(ctx context.Context, logs []*control.Log, r *Rehearsal) error {
	now := c.pair.Now()
	from := now - change.Millis(lullWindow.Milliseconds())
	seconds := map[change.Millis]bool{} // in which something was written: records have whole seconds
	for _, l := range logs {
		oldest, err := changesSince(ctx, l, from, func(at change.Millis) { seconds[at/1000] = true })
		if err != nil {
			return fmt.Errorf("look for a lull in the log of %s: %w", l.Table, err)
		}
		from = max(from, oldest)
	}
	longest, begin := longestLull(seconds, from, now)
	r.Quiet.Longest, r.Quiet.Since = longest.Seconds(), utc(begin)
	r.Quiet.Window = (time.Duration(now-from) * time.Millisecond).Seconds()
	return nil
}

// longestLull returns the longest time between two times that has none of the seconds.
func longestLull(seconds map[change.Millis]bool, from, to change.Millis) (longest time.Duration, begin change.Millis) {
	last := from
	look := func(at change.Millis) {
		if d := time.Duration(at-last) * time.Millisecond; d > longest {
			longest, begin = d, last
		}
	}
	all := make([]change.Millis, 0, len(seconds))
	for s := range seconds {
		all = append(all, s*1000)
	}
	slices.Sort(all)
	for _, at := range all {
		if at < from || at > to {
			continue
		}
		look(at)
		last = max(last, at+1000)
	}
	look(to)
	return longest, begin
}

// changesSince calls f with the creation of each change of an application that a log holds and that
// was read since about a time. It returns from when on the log is complete; 0: from that time on.
func changesSince(
	ctx context.Context, l *control.Log, since change.Millis, f func(change.Millis),
) (complete change.Millis, err error) {
	walk := queue.Walk{Log: l.Log}
	for _, w := range l.State.Watermarks { // rising: everything before Time was read before the entry
		if w.Time <= since {
			walk.From = w.Seq
		}
	}
	_, err = walk.Changes(ctx, count(f))
	if errors.Is(err, queue.ErrTrimmed) {
		walk.From = 0
		_, err = walk.Changes(ctx, count(f))
	}
	if err != nil || walk.From > 0 {
		return 0, err
	}
	info, err := l.Log.Info(ctx)
	if err != nil || info.Oldest.IsZero() {
		return change.MillisOf(time.Now()), err
	}
	return change.MillisOf(info.Oldest), nil
}

// changesAfter calls f with the creation of each change of an application behind a mark.
func changesAfter(
	ctx context.Context, l *control.Log, after checkpoint.Mark, f func(change.Millis),
) (checkpoint.Mark, error) {
	return queue.Walk{Log: l.Log, After: after}.Changes(ctx, count(f))
}

func count(f func(change.Millis)) func(*queue.WalkedChange) error {
	return func(x *queue.WalkedChange) error {
		if !x.TTL {
			f(x.Created)
		}
		return nil
	}
}

// checkpointMark returns the mark of the newest entry that a look at a log has folded.
func checkpointMark(l *control.Log) checkpoint.Mark {
	return checkpoint.Mark{Seq: l.State.Seq, Hash: l.State.Hash}
}
