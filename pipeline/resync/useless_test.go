package resync

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/export"
)

// useless makes exports that nobody can read. It knows a token for eight hours.
type useless struct {
	asked map[string]time.Time
	made  int
}

func (u *useless) StartExport(_ context.Context, r source.ExportRequest) (string, error) {
	if at, ok := u.asked[r.ClientToken]; !ok || time.Since(at) > 8*time.Hour {
		u.asked[r.ClientToken] = time.Now()
		u.made++
	}
	return r.ClientToken, nil
}

func (u *useless) ExportStatus(context.Context, string) (source.ExportStatus, error) {
	return source.ExportStatus{Status: source.ExportCompleted, URL: "s3://backups/x"}, nil
}

// TestUselessExportsAreNotAskedForWithoutBound: each is paid for, and where none can be read, as in a bucket of another
// region, the next one cannot either.
func TestUselessExportsAreNotAskedForWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTable(t, 0, 0).options()
		u := &useless{asked: map[string]time.Time{}}
		o.Exporter, o.Table.Bucket = u, "backups"
		o.OpenExport = func(context.Context, string) (*export.Export, error) {
			return nil, &source.Error{Op: "open", Class: failure.Rejected, Err: errors.New("the bucket is in another region")}
		}
		for restarts := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Hour-time.Minute)
			c := New(o, &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "backfill-1", From: checkpoint.FromExport}})
			if _, err := c.ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			if n := u.made; n < 2 || n > 10*(restarts+1) {
				t.Errorf("after %d restarts %d exports were made", restarts, n)
			}
		}
	})
}
