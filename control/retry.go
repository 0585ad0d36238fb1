package control

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// RetriedLetters is the result of a retry of dead letters.
type RetriedLetters struct {
	request.Outcome
	Unreadable []string // why letters belong to no item, a line each; they count as refused
}

// Empty reports whether no letter was tried.
func (r *RetriedLetters) Empty() bool { return r.Applied+r.Refused+r.Waiting == 0 }

// Then returns the result of this retry and a later one of the same letters: what was applied adds
// up, and what stays is what the later one left. It may be nil.
func (r *RetriedLetters) Then(later *RetriedLetters) *RetriedLetters {
	if later == nil {
		return r
	}
	sum := *later
	sum.Applied += r.Applied
	sum.Written, sum.Left = sum.Written+r.Written, sum.Left+r.Left
	return &sum
}

// RetryLetters requests the owners to try the dead letters of the tables again: the letters of each
// item that has a letter chosen by only, or all letters if only is nil. An error of one table does
// not stop the others. A letter that is refused again is a result and not an error.
func RetryLetters(
	ctx context.Context, tables []LettersOf, only func(*deadletter.Letter) bool, requester func(table string) *Requester,
) (*RetriedLetters, error) {
	sum := &RequestTotal{}
	r := &RetriedLetters{}
	var errs []error
	for _, t := range tables {
		open := &LetterItems{Store: t.Store, Only: only}
		done, err := requester(t.Source).Do(ctx, request.Letters, open.Items(ctx))
		sum.add(&done.Outcome)
		sum.Refused += int64(len(open.Unreadable))
		r.Unreadable, errs = append(r.Unreadable, open.Unreadable...), append(errs, err)
	}
	r.Outcome = sum.Outcome
	return r, errors.Join(errs...)
}

// LetterItems are the dead letters of a table that a retry concerns.
type LetterItems struct {
	Store *deadletter.Store
	Only  func(*deadletter.Letter) bool // if set, only those of items that have a letter which it chooses

	Unreadable []string // why others belong to no item, a line each
}

// itemKey identifies an item. Keys that are spelled in two ways count as two: the owner unites
// them.
type itemKey struct {
	hash uint64
	keys string
}

// Items yields the items of the letters, in the order in which they were first refused. The owner
// finds the letters of an item by itself, those that come meanwhile too.
func (l *LetterItems) Items(ctx context.Context) iter.Seq2[request.Item, error] {
	return func(yield func(request.Item, error) bool) {
		seen := map[itemKey]bool{}
		for letter, err := range l.Store.All(ctx) {
			if err != nil {
				yield(request.Item{}, fmt.Errorf("list dead letters: %w", err))
				return
			}
			if l.Only != nil && !l.Only(letter) {
				continue
			}
			keys, err := keysOf(letter)
			if err != nil {
				l.Unreadable = append(l.Unreadable, fmt.Sprintf("%s: %s (%s)", letter.ID, err, letter.Code))
				continue
			}
			k := itemKey{letter.KeyHash, string(keys)}
			if seen[k] {
				continue
			}
			seen[k] = true
			if !yield(request.Item{Key: keys}, nil) {
				return
			}
		}
	}
}

// keysOf returns the key attributes of a letter's item.
func keysOf(l *deadletter.Letter) ([]byte, error) {
	if l.Code == deadletter.CodeUnreadable {
		return nil, fmt.Errorf("%s; it can only be dropped", l.Reason)
	}
	if l.Copy != "" || l.Event {
		return l.Keys, nil
	}
	c, err := l.Change()
	if err != nil {
		return nil, fmt.Errorf("its record cannot be read, so it can only be dropped: %w", err)
	}
	return c.Keys, nil
}
