package restore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/transform"
)

// keyHash stands for a key: the keys of all items that were found are in memory.
type keyHash [16]byte

func hashOf(e *transform.Event) (h keyHash) {
	sum := sha256.Sum256([]byte(e.Subject))
	copy(h[:], sum[:])
	return h
}

// newest is an event that is the newest of its item so far.
type newest struct {
	created, version int64
	at               int // which event of the hour
}

// Newest yields the newest event of each item, from the last hour back to the first. It reads the
// objects of an hour twice: to find the newest events, then to yield them. Events counts all events
// of the first reading.
func (q *Query) Newest(ctx context.Context, b bucket.Bucket, events *int64, yield func(*transform.Event) error) error {
	hours, bytes, err := q.hours(ctx, b)
	if err != nil {
		return err
	}
	slices.Reverse(hours)
	seen := map[keyHash]struct{}{}
	var done int64
	for _, objects := range hours {
		chosen, n, err := q.choose(ctx, b, objects, seen)
		if err != nil {
			return err
		}
		*events += int64(n)
		at := 0
		for _, f := range objects {
			err := q.object(ctx, b, f, func(e *transform.Event) error {
				x, ok := chosen[hashOf(e)]
				if at++; !ok || x.at != at-1 {
					return nil
				}
				return yield(e)
			})
			if err != nil {
				return err
			}
			if done += f.Size; q.Progress != nil {
				q.Progress(done, bytes)
			}
		}
		for key := range chosen {
			seen[key] = struct{}{}
		}
	}
	return nil
}

// choose returns the newest event of each item of an hour that no later hour has, and how many
// events were read.
func (q *Query) choose(
	ctx context.Context, b bucket.Bucket, objects []found, seen map[keyHash]struct{},
) (chosen map[keyHash]newest, events int, err error) {
	chosen = map[keyHash]newest{}
	for _, f := range objects {
		err := q.object(ctx, b, f, func(e *transform.Event) error {
			key, x := hashOf(e), newest{int64(e.Created), int64(e.Version), events}
			events++
			if _, ok := seen[key]; ok {
				return nil
			}
			old, ok := chosen[key]
			if !ok || cmp.Or(cmp.Compare(x.created, old.created), cmp.Compare(x.version, old.version)) > 0 {
				chosen[key] = x
			}
			return nil
		})
		if err != nil {
			return nil, events, err
		}
	}
	return chosen, events, nil
}
