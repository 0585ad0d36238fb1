package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// refuse returns why the table may not be retired; nil when it may.
func (r *Retirement) refuse(ctx context.Context) error {
	if r.configured() >= 0 && r.row == nil && len(r.Kept.Streams) > 0 ||
		r.configured() >= 0 && r.row != nil && r.row.Fenced == nil {
		if r.cfg.Tables[r.configured()].ArchivedOnly() {
			return failure.With(failure.Unready,
				"take it out of the configuration, and start the replicator again without it",
				fmt.Errorf("table %s is configured: it is still archived", r.Table))
		}
		return failure.With(failure.Unready,
			"first `replicator cutover --table "+r.Table+"`; or, to give it up, take it out of the configuration and start "+
				"the replicator again without it",
			fmt.Errorf("table %s is configured and not fenced: it is still replicated", r.Table))
	}
	if err := r.checkOwner(ctx); err != nil {
		return err
	}
	if err := r.checkUnapplied(ctx); err != nil {
		return err
	}
	if n, err := r.unarchived(ctx); err != nil && !r.DropLetters {
		return err
	} else if n > 0 && !r.DropLetters {
		return failure.With(failure.Unready,
			"put the table back until `replicator status` says that no event waits; or waive them with --drop-letters",
			fmt.Errorf("%s of %s %s not in an object of the archive yet",
				english.Plural(n, "deletion", ""), r.Table, english.PluralWord(n, "is", "are")))
	}
	if r.Kept.Letters > 0 && !r.DropLetters {
		n := int(r.Kept.Letters)
		return failure.With(failure.Unready,
			"`replicator dlq list --table "+r.Table+"` shows them; retry or drop them, or waive them with --drop-letters",
			fmt.Errorf("%s of %s %s never applied to Bigtable", english.Plural(n, "dead letter", ""),
				r.Table, english.PluralWord(n, "was", "were")))
	}
	return nil
}

// checkUnapplied refuses a table with changes in its log that Bigtable never gets, unless exactly
// their number is waived: only the log holds them. They are changes that no replicator has applied,
// and, for a fenced table, the application's writes to DynamoDB behind the fence.
func (r *Retirement) checkUnapplied(ctx context.Context) error {
	if r.queue == nil || r.sink == nil {
		return nil
	}
	log, err := r.queue.Log(ctx, r.Table)
	if errors.Is(err, queue.ErrNoLog) { // an earlier retire has taken it away, and said this
		return nil
	}
	var s *checkpoint.State
	var before uint64
	if err == nil {
		s, err = log.Fold(ctx)
	}
	if err == nil {
		r.delegated = s.WorkersMayWrite()
		r.Kept.Unapplied, before, err = unapplied(ctx, log, s)
	}
	switch {
	case err != nil && !damaged(err):
		return failure.With(failure.Unready, "nothing was changed; see `replicator check`, then the same command",
			fmt.Errorf("count changes of %s that Bigtable lacks: %w", r.Table, err))
	case err != nil && r.Kept.Fence == "":
		return nil // given up, with a log that is damaged
	case err != nil:
		return failure.With(failure.Unready,
			"see `replicator check`; to give up a damaged log: `replicator cutover --undo`, take the table out of "+
				"the configuration, then the same command", fmt.Errorf("count changes behind the fence of %s: %w", r.Table, err))
	}
	if u := r.Kept.Unapplied; u == nil && r.DropChanges > 0 {
		return failure.With(failure.Unready,
			"nothing was changed; the same command without --drop-changes",
			fmt.Errorf("the log of %s holds no change that Bigtable lacks, and --drop-changes waives %d",
				r.Table, r.DropChanges))
	} else if u != nil && u.Changes != r.DropChanges {
		return r.refuseUnapplied(s.Fence != nil, before)
	}
	return nil
}

// damaged reports whether a log will not be whole again by itself.
//
// Rule 13: that it could not be read now gives up no change in it. Its server may be slow, its
// volume away, or a newer version may have written it.
func damaged(err error) bool {
	damage := (*queue.DamageError)(nil)
	return errors.As(err, &damage) || errors.Is(err, queue.ErrUnopened) ||
		errors.Is(err, queue.ErrEmptied)
}

// unapplied returns the changes that a log holds and Bigtable never gets; nil for none. The log
// counts the changes behind a fence. The others, up to the fence or to the end, are the changes
// behind the sink's mark: if a cutover is interrupted, its fence may stand before they are applied.
// before is the number of these others.
func unapplied(
	ctx context.Context, log *queue.Log, s *checkpoint.State,
) (u *status.BehindFence, before uint64, err error) {
	u, f, end := new(status.BehindFence), s.Fence, s.LastFor(checkpoint.SinkBigtable)
	if mark, ok := s.Marks[checkpoint.SinkBigtable]; ok && mark.Seq < end {
		_, err = queue.Walk{Log: log, After: mark}.Changes(ctx, func(c *queue.WalkedChange) error {
			if c.Entry.Seq > end {
				return nil
			}
			if u.Changes++; u.Changes == 1 {
				u.Since = c.Created.Time().UTC()
			}
			if h := change.HashText(c.KeyHash); len(u.KeyHashes) < mostHashes && !slices.Contains(u.KeyHashes, h) {
				u.KeyHashes = append(u.KeyHashes, h)
			}
			return nil
		})
		before = u.Changes
	}
	if f != nil && f.Behind > 0 && err == nil {
		if u.Changes += f.Behind; before == 0 {
			u.Since = f.BehindSince.Time().UTC()
		}
		hashes, _ := queue.KeyHashesBehind(ctx, log, f.Seq, mostHashes) // the number is what counts
		u.KeyHashes = append(u.KeyHashes, hashes[:min(len(hashes), mostHashes-len(u.KeyHashes))]...)
	}
	if u.Changes == 0 {
		u = nil
	}
	return u, before, err
}

// refuseUnapplied reports that the log holds another number of unapplied changes than is waived.
// before is how many of them are not behind a fence.
func (r *Retirement) refuseUnapplied(fenced bool, before uint64) error {
	u := r.Kept.Unapplied
	n, where := int(u.Changes), "in the log"
	hint := "put the table back until `replicator status` says that they are applied"
	switch {
	case fenced && before == 0:
		where, hint = "behind the fence", "look for the writer, and let the application carry these items over"
	case fenced:
		hint = fmt.Sprintf("%d of them from before the fence: start the replicator with the table, which applies them, "+
			"and let `replicator cutover` go on to the certificate", before)
	}
	return failure.With(failure.Unready,
		fmt.Sprintf("%s; or waive exactly these changes with --drop-changes %d", hint, n),
		fmt.Errorf("%s %s of %s since %s %s never applied to Bigtable (key hashes %s)",
			english.Plural(n, "change", ""), where, r.Table, u.Since.Format(time.RFC3339), english.PluralWord(n, "was", "were"),
			strings.Join(u.KeyHashes, ", ")))
}

// sinkArchive is the sink that copies deletions from the log into the archive's stream.
const sinkArchive = "archive"

// unarchived returns how many events are in no object of the archive yet: the events in the
// archive's stream, and the events of the log that were not copied there because the stream was
// full or could not be opened.
func (r *Retirement) unarchived(ctx context.Context) (int, error) {
	if r.queue == nil {
		return 0, nil
	}
	log, err := r.queue.Log(ctx, r.Table)
	if errors.Is(err, queue.ErrNoLog) { // an earlier retire has taken it away, and said this
		return 0, nil
	}
	var state *checkpoint.State
	if err == nil {
		state, err = log.Fold(ctx)
	}
	n := 0
	if err == nil {
		if n, err = r.notCopied(ctx, log, state); err != nil {
			return 0, failure.With(failure.Unready, "see `replicator check`; they are waived with --drop-letters",
				fmt.Errorf("count deletions of %s that the archive lacks: %w", r.Table, err))
		}
	}
	if !slices.ContainsFunc(r.Kept.Streams, func(k queue.Kept) bool { return k.What == "archive" }) {
		return n, nil // a log that cannot be read is checkUnapplied's
	}
	var j *journal.Journal
	if err == nil {
		j, err = log.ExistingArchive(ctx)
	}
	var s *ledger.State
	if err == nil && j != nil {
		s, err = archiving.Fold(ctx, j)
	}
	if err != nil {
		return 0, failure.With(failure.Unready, "see `replicator check`; what the stream holds is waived with --drop-letters",
			fmt.Errorf("read the archive's stream of %s: %w", r.Table, err))
	}
	if s == nil {
		return n, nil
	}
	events, _ := s.Waiting()
	return n + int(events), nil
}

// notCopied counts the deletions of a log behind the mark of the archive. After a process was
// killed some of them may be in the archive's stream: they count twice until it has run again.
func (r *Retirement) notCopied(ctx context.Context, log *queue.Log, s *checkpoint.State) (n int, err error) {
	mark, ok := s.Marks[sinkArchive]
	if !ok || mark.Seq >= s.LastFrame {
		return 0, nil
	}
	others := slices.ContainsFunc(r.cfg.Archive.Classes, func(class string) bool { return class != "ttl" })
	_, err = queue.Walk{Log: log, After: mark}.Changes(ctx, func(c *queue.WalkedChange) error {
		if c.TTL || others && c.Op == change.Remove {
			n++
		}
		return nil
	})
	return n, err
}

// checkOwner refuses a table if the owner of its log is alive. The owner would not write to
// Bigtable, because the row is fenced; but its table would halt, and a log that was taken away
// looks like a lost one.
//
// Rule 13: that the owner is silent is believed once it has lasted for the time of a claim.
func (r *Retirement) checkOwner(ctx context.Context) error {
	if r.queue == nil || r.queue.Embedded() { // this process holds the store: nobody else has it open
		return nil
	}
	log, err := r.queue.Log(ctx, r.Table)
	if errors.Is(err, queue.ErrNoLog) {
		return nil
	}
	var s *checkpoint.State
	if err == nil {
		s, err = log.Fold(ctx)
	}
	if err != nil {
		return failure.With(failure.Unready, "stop every replicator with this table; "+repeatHint,
			fmt.Errorf("read log of %s: %w", r.Table, err))
	}
	l, ttl := &control.Log{Table: r.Table, Log: log, State: s}, time.Duration(r.cfg.Protocol.ClaimTTL)
	if alive, err := control.OwnerLives(ctx, l, r.Now, ttl); err != nil || !alive {
		return err
	}
	return failure.With(failure.Unready,
		"stop it, or take the table out of its configuration and start it again without it; then the same command",
		fmt.Errorf("replicator %s carries table %s", l.State.Owner, r.Table))
}
