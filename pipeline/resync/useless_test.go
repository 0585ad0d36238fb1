package resync

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/protocol"
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

// TestUselessExportsAreNotAskedForWithoutBound: each is paid for, and where none can be read, as in
// a bucket of another region, the next one cannot either.
func TestUselessExportsAreNotAskedForWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTable(t, 0, 0).options()
		u := &useless{asked: map[string]time.Time{}}
		o.Exports.Exporter, o.Exports.Bucket = u, "backups"
		o.Exports.Open = func(context.Context, string) (*export.Export, error) {
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

// prompt makes exports at once, each of the moment of its request. It knows a token for eight
// hours.
type prompt struct {
	o    *Options
	made map[string]time.Time
}

func (p *prompt) StartExport(_ context.Context, r source.ExportRequest) (string, error) {
	if _, ok := p.made[r.ClientToken]; !ok {
		p.made[r.ClientToken] = p.o.Now().Time()
	}
	return r.ClientToken, nil
}

func (p *prompt) ExportStatus(_ context.Context, arn string) (source.ExportStatus, error) {
	return source.ExportStatus{Status: source.ExportCompleted, Time: p.made[arn], URL: "s3://backups/" + arn}, nil
}

func (p *prompt) open(_ context.Context, url string) (*export.Export, error) {
	at := p.made[strings.TrimPrefix(url, "s3://backups/")]
	return &export.Export{URL: url, Kind: export.Full, Time: change.MillisOf(at), Files: make([]export.File, 2),
		Wholeness: export.Whole}, nil
}

// TestOwnExportIsOfAMomentThatTheStreamJoins: an export that is asked for as soon as the stream was
// enabled, or a gap was found, shows too early a moment. The copy waits before it asks; and one
// that was asked for too early, by another version or before the gap, is replaced by the next. No
// operator has to do anything.
func TestOwnExportIsOfAMomentThatTheStreamJoins(t *testing.T) {
	for what, c := range map[string]struct {
		young, gap bool
		early      bool // an export exists already, of a moment that is too early
		made       int
	}{
		"stream of two seconds": {young: true, made: 1},
		"gap of two seconds":    {gap: true, made: 1},
		"export of before":      {young: true, early: true, made: 2},
		"export before the gap": {gap: true, early: true, made: 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTable(t, 0, 0).options()
				p := &prompt{o: &o, made: map[string]time.Time{}}
				o.Exports = Exports{Exporter: p, Open: p.open, Bucket: "backups", Cover: 1}
				enabled := o.Now() - 2000
				if c.young {
					o.Exports.Cover = enabled - apply.ResyncMargin + 5000
				}
				gap := change.Millis(0)
				if o.gap(func() change.Millis { return gap }); c.gap {
					gap = enabled
				}
				if c.early {
					p.made[exportToken(&o, "backfill-1", 0)] = o.Now().Time()
				}
				state := &checkpoint.CopyState{Copy: checkpoint.Copy{ID: "backfill-1", From: checkpoint.FromExport}}
				got, err := New(o, state).ask(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(p.made) != c.made {
					t.Errorf("%d exports, want %d", len(p.made), c.made)
				}
				at := change.Millis(got.Version) + apply.ResyncMargin
				if why := protocol.CheckExport(at, o.Exports.Cover, gap, o.Now()); why != "" {
					t.Error(why)
				}
			})
		})
	}
}
