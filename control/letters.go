package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// LettersOf is the dead letters of one table.
type LettersOf struct {
	*deadletter.Store
	Source     string    // table of DynamoDB
	LogCreated time.Time // when the table's log was made
}

// OpenLetters opens the dead letters of the tables that have a store of them.
func OpenLetters(ctx context.Context, q *queue.Queue, tables []config.Table) ([]LettersOf, error) {
	var all []LettersOf
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) {
			continue
		}
		var letters *deadletter.Store
		if err == nil {
			letters, err = log.ExistingDeadLetters(ctx)
		}
		if err != nil {
			return nil, failure.With(failure.Unready, "see `replicator check`",
				fmt.Errorf("open dead letters of %s: %w", t.Source, err))
		}
		if letters == nil {
			continue // the replicator has not made their stream yet
		}
		all = append(all, LettersOf{letters, t.Source, log.Created()})
	}
	return all, nil
}

// FindLetter returns a dead letter and the letters of its table.
func FindLetter(ctx context.Context, all []LettersOf, id string) (LettersOf, *deadletter.Letter, error) {
	for _, t := range all {
		letter, err := t.Get(ctx, id)
		if errors.Is(err, deadletter.ErrNotFound) {
			continue
		}
		if err != nil {
			return t, nil, fmt.Errorf("read dead letter: %w", err)
		}
		return t, letter, nil
	}
	return LettersOf{}, nil,
		failure.Usagef("`replicator dlq list` shows them", "no dead letter %q", id)
}

// LetterFilter chooses dead letters; empty fields choose all.
type LetterFilter struct {
	Table string // source table
	Code  string // why they were refused
	Sink  string // that refused them
}

// Empty reports whether the filter chooses all letters.
func (f LetterFilter) Empty() bool { return f == LetterFilter{} }

// Match reports whether the filter chooses a letter of its table.
func (f LetterFilter) Match(l *deadletter.Letter) bool {
	return (f.Code == "" || f.Code == l.Code) && (f.Sink == "" || f.Sink == l.Sink)
}

// atOnce is how many letters are dropped between two checks for an interruption of the command.
const atOnce = 1000

// DropLetters drops the letters of a table that a filter chooses, and returns how many. Letters
// that come meanwhile stay: they were not listed.
func DropLetters(ctx context.Context, t LettersOf, some LetterFilter) (dropped int, err error) {
	var ids []string
	for l, err := range t.All(ctx) {
		if err != nil {
			return 0, fmt.Errorf("list dead letters: %w", err)
		}
		if some.Match(l) {
			ids = append(ids, l.ID)
		}
	}
	for batch := range slices.Chunk(ids, atOnce) {
		if err := t.Drop(ctx, batch...); err != nil && !errors.Is(err, deadletter.ErrNotFound) {
			return dropped, err
		}
		dropped += len(batch)
	}
	return dropped, nil
}
