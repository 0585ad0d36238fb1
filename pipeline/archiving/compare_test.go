package archiving

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// unread is a bucket with an object of one content; reading it fails with err, where that is set.
type unread struct {
	bucket.Bucket
	content *strings.Reader
	err     error
}

func (u *unread) Open(context.Context, string) (bucket.Reader, error) { return u, nil }
func (u *unread) Size() int64                                         { return u.content.Size() }
func (u *unread) Close() error                                        { return nil }

func (u *unread) ReadAt(p []byte, at int64) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	return u.content.ReadAt(p, at)
}

// TestObjectThatCannotBeReadIsNoConflict: its content is not known, and it is read again. What is
// no object is one.
func TestObjectThatCannotBeReadIsNoConflict(t *testing.T) {
	u := &unread{content: strings.NewReader("of somebody else, and longer than the end of a footer")}
	l := &life{a: &Archiver{o: Options{Place: Place{Objects: u}}}}
	_, err := l.compare(t.Context(), &ledger.Intent{Name: "x.parquet"})
	if code, _ := explain(SinkObjects, err); code != "archive_conflict" {
		t.Errorf("other content: %q, %v", code, err)
	}
	u.err = &bucket.Error{Op: "read x.parquet", Class: failure.Transient, Err: errors.New("cut off")}
	_, err = l.compare(t.Context(), &ledger.Intent{Name: "x.parquet"})
	if code, _ := explain(SinkObjects, err); code != "" || !errors.Is(err, u.err) {
		t.Errorf("not read: %q, %v", code, err)
	}
}
