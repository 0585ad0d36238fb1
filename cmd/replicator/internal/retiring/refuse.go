package retiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/queue"
)

// refuse returns why the table may not be retired; nil when it may.
func (r *Retirement) refuse(ctx context.Context) error {
	if r.configured() >= 0 && r.row == nil && len(r.Kept.Streams) > 0 ||
		r.configured() >= 0 && r.row != nil && r.row.Fenced == nil {
		if r.cfg.Tables[r.configured()].ArchivedOnly() {
			return exit.Environment(fmt.Errorf("table %s is configured: it is still archived", r.Table),
				"take it out of the configuration, and start the replicator again without it")
		}
		return exit.Environment(fmt.Errorf("table %s is configured and not fenced: it is still replicated", r.Table),
			"first `replicator cutover --table "+r.Table+"`; or, to give it up, take it out of the configuration and start "+
				"the replicator again without it")
	}
	if err := r.checkOwner(ctx); err != nil {
		return err
	}
	if r.Kept.Letters > 0 && !r.DropLetters {
		n := int(r.Kept.Letters)
		return exit.Environment(fmt.Errorf("%s of %s %s never applied to Bigtable", english.Plural(n, "dead letter", ""),
			r.Table, english.PluralWord(n, "was", "were")),
			"`replicator dlq list --table "+r.Table+"` shows them; retry or drop them, or waive them with --drop-letters")
	}
	return nil
}

// checkOwner refuses a table whose log has an owner that lives. It would not write to Bigtable, because the row is
// fenced; but it would halt in the middle, and nobody could tell a lost log from one that was taken away.
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
		return exit.Environment(fmt.Errorf("read log of %s: %w", r.Table, err),
			"stop every replicator with this table; "+again)
	}
	if !alive(s, r.Now(), time.Duration(r.cfg.Testing.ClaimTTL)) {
		return nil
	}
	return exit.Environment(fmt.Errorf("replicator %s carries table %s", s.Owner, r.Table),
		"stop it, or take the table out of its configuration and start it again without it; then the same command")
}

// alive reports whether the owner of a log has given a sign of life lately.
func alive(s *checkpoint.State, now time.Time, ttl time.Duration) bool {
	silent := time.Duration(change.MillisOf(now)-s.Date) * time.Millisecond
	return s.Owner != "" && !s.Released && silent <= 3*ttl
}
