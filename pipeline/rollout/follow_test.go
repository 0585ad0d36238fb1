package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// follower is a process that follows the format of a pipeline with one log, at a time that the test
// sets.
type follower struct {
	*Format
	at      time.Time
	members []Member
	deaf    error // of Members
}

// older is the format of the log that a follower finds; the follower's build is one of the next
// format.
const older = 1

// newFollower claims a log of an older format for "a", and returns the process with that name.
func newFollower(t *testing.T) *follower {
	t.Helper()
	newest := checkpoint.Format
	checkpoint.Format = older + 1
	t.Cleanup(func() { checkpoint.Format = newest })
	o := queue.Options{Dir: t.TempDir(), Pipeline: "shop", MaxBytes: 64 << 20}
	q, err := queue.Open(t.Context(), o, zaptest.NewLogger(t), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	l, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err == nil {
		_, err = l.Claim(t.Context(), queue.ClaimOptions{Owner: "a", Alone: true, Format: older})
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{at: time.Unix(1_700_000_000, 0), members: []Member{{Owner: "a", Reads: checkpoint.Format}}}
	f.Format = New(Options{
		Pipeline: "shop", Owner: "a", Build: "b", Store: &memory{}, Queue: q, Logger: zaptest.NewLogger(t),
		Members: func(context.Context) ([]Member, error) { return f.members, f.deaf },
	})
	f.now = func() time.Time { return f.at }
	return f
}

// wait lets time pass with a look each minute, and returns the row at the end.
func (f *follower) wait(t *testing.T, d time.Duration) *Row {
	t.Helper()
	for end := f.at.Add(d); ; f.at = f.at.Add(time.Minute) {
		row, err := f.look(t.Context())
		if err == nil {
			err = f.note(row)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !f.at.Before(end) {
			return row
		}
	}
}

// TestOwnerRaisesThePipelineAfterADayInWhichAllAgree: not before, not while nobody is heard, and
// not by a stand-by.
func TestOwnerRaisesThePipelineAfterADayInWhichAllAgree(t *testing.T) {
	f := newFollower(t)
	if row := f.wait(t, Patience-time.Minute); row.Log != older || row.By != ByStart || f.Target() != older {
		t.Fatalf("before a day is over: %+v", row)
	}
	f.deaf = errors.New("nobody is heard")
	f.wait(t, time.Minute)
	f.deaf = nil
	if row := f.wait(t, Patience-time.Hour); row.Log != older {
		t.Fatalf("a day with a break: %+v", row)
	}
	f.o.Owner = "b" // a stand-by
	if row := f.wait(t, 2*Patience); row.Log != older {
		t.Fatalf("by a process without a log: %+v", row)
	}
	f.o.Owner = "a"
	if row := f.wait(t, 0); row.Log != checkpoint.Format || row.By != ByAgreement || row.Build != "b" ||
		f.Target() != checkpoint.Format {
		t.Fatalf("after a day: %+v", row)
	}
}

// TestPipelineOfAnOlderBuildHasTheFormatOfItsLogs, and a new one the newest.
func TestPipelineOfAnOlderBuildHasTheFormatOfItsLogs(t *testing.T) {
	f := newFollower(t)
	if err := f.Begin(t.Context()); err != nil || f.Target() != 0 {
		t.Errorf("with a log and without a row: format %d, %v", f.Target(), err)
	}
	if row := f.wait(t, 0); row.Log != older {
		t.Errorf("%+v", row)
	}
	l, err := f.o.Queue.Log(t.Context(), "Orders")
	if err == nil {
		err = f.o.Queue.DeleteLog(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.o.Store = &memory{}
	if err := f.Begin(t.Context()); err != nil || f.Target() != checkpoint.Format {
		t.Errorf("without logs: format %d, %v", f.Target(), err)
	}
}

// TestBuildIsRefusedByANewerPipelineBeforeItClaims: also one that finds out later ends.
func TestBuildIsRefusedByANewerPipelineBeforeItClaims(t *testing.T) {
	f := newFollower(t)
	f.o.Store = &memory{row: &Row{Log: checkpoint.Format + 1, Build: "9"}}
	refused := (*outcome.RefusedError)(nil)
	if err := f.Begin(t.Context()); !errors.As(err, &refused) {
		t.Errorf("begin: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := f.Run(ctx); !errors.As(err, &refused) {
		t.Errorf("run: %v", err)
	}
}

// TestLogThatIsToBeRaisedEndsItsWork: only when the pipeline has a higher format than the log.
func TestLogThatIsToBeRaisedEndsItsWork(t *testing.T) {
	f := newFollower(t)
	f.wait(t, 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Follow(ended, older, false); err != nil {
		t.Errorf("the format of the pipeline: %v", err)
	}
	stale := (*outcome.StaleError)(nil)
	if err := f.Follow(ended, older-1, false); !errors.As(err, &stale) {
		t.Errorf("an older one: %v", err)
	}
	if err := f.Follow(ended, older-1, true); err != nil {
		t.Errorf("a full log is raised at once: %v", err)
	}
	if err := f.note(&Row{Log: older - 1}); err != nil || f.Target() != older {
		t.Errorf("a row that fell: format %d, %v", f.Target(), err)
	}
}
