package pipeline_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/queue"
)

// The tests of this package run as a build of the next format, so that logs of the format before it
// can be raised.
const older = 1

func init() { checkpoint.Format = older + 1 }

// oldLog makes the log of a table as a build of an older format leaves it after its first claim.
func (w *world) oldLog(name string) {
	w.t.Helper()
	r := w.open(name)
	l, err := r.queue.CreateLog(w.t.Context(), name, "t0ken")
	if err != nil {
		w.t.Fatal(err)
	}
	owner, err := l.Claim(w.t.Context(), queue.ClaimOptions{Owner: "older", Format: older})
	if err == nil {
		err = owner.Release(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	r.ended <- nil
	r.close()
}

// formatRow is the row that names the format of the pipeline's logs.
func (r *run) formatRow() *rollout.Row {
	r.t.Helper()
	row, err := rollout.InBigtable(r.sink).Load(r.t.Context(), "shop")
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

// raise raises the format of the pipeline, as `replicator upgrade --finalize` does.
func (r *run) raise(to int) {
	r.t.Helper()
	_, err := rollout.Raise(r.t.Context(), rollout.InBigtable(r.sink), "shop", rollout.Row{Log: to, Build: "v9"})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A build that is rolled out beside an older one must not lock that out of the log. Once the
// pipeline is raised, the owner raises its log while it runs.
func TestLogIsRaisedWhileItIsReadOnceThePipelineIs(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.oldLog("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 61, 50)
	r.settle()
	r.until(
		"the pipeline has the format of its log",
		func() bool { row := r.formatRow(); return row != nil && row.Log == older },
	)
	if got := r.table("Orders").LogFormat; got != older {
		t.Errorf("log of format %d, and nobody has raised the pipeline", got)
	}
	r.raise(checkpoint.Format)
	w.changeItems("Orders", 62, 50)
	r.until("the log is raised", func() bool { return r.table("Orders").LogFormat == checkpoint.Format })
	r.settle()
	r.equal()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A table that is added to a pipeline of an older format begins in that: the older version can
// still take it over.
func TestNewLogBeginsInTheFormatOfThePipeline(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Sessions")
	w.oldLog("Orders")
	r := w.start("Orders", "Sessions")
	w.changeItems("Sessions", 63, 50)
	r.settle()
	if got := r.table("Sessions").LogFormat; got != older {
		t.Errorf("log of format %d in a pipeline of an older one", got)
	}
	r.raise(checkpoint.Format)
	r.until("both are raised", func() bool {
		return r.table("Orders").LogFormat == checkpoint.Format && r.table("Sessions").LogFormat == checkpoint.Format
	})
	r.settle()
	r.equal()
}

// Also a paused table follows, and its log is read by nobody meanwhile.
func TestPausedLogIsRaised(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	w.oldLog("Orders")
	r := w.start("Orders")
	r.settle()
	pause := true
	r.control("Orders", &checkpoint.Control{Pause: &pause})
	r.until("it is paused", func() bool { return r.table("Orders").State == "paused" })
	r.raise(checkpoint.Format)
	r.until("the log is raised", func() bool { return r.fold("Orders").Format == checkpoint.Format })
	if r.table("Orders").State != "paused" {
		t.Errorf("the table is %s", r.table("Orders").State)
	}
}

// Rule 11: a build ends, and does not begin again, when the pipeline is raised above what it reads.
func TestBuildEndsWhenThePipelineIsRaisedAboveIt(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 64, 50)
	r.settle()
	if row := r.formatRow(); row == nil || row.Log != checkpoint.Format || row.By != rollout.ByStart {
		t.Errorf("a new pipeline has the format %+v", row)
	}
	r.raise(checkpoint.Format + 1)
	for _, began := range []bool{true, false} {
		var refused *pipeline.RefusedError
		if err := <-r.ended; !errors.As(err, &refused) || !strings.Contains(refused.What, "this build reads up to") ||
			!strings.Contains(refused.Hint, "version v9 or later") {
			t.Fatalf("ended with %v", err)
		}
		if s := r.fold("Orders"); !s.Released || s.Format != checkpoint.Format {
			t.Errorf("log of format %d, released %t", s.Format, s.Released)
		}
		r.ended <- nil
		r.close()
		if began {
			r = w.restart("Orders")
		}
	}
}

// A row that was restored from an older copy, or lost, lowers no log.
func TestRestoredRowLowersNothing(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 65, 50)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, restored := range []int{older, 0} {
		w.oldFormat(restored)
		r = w.restart("Orders")
		w.changeItems("Orders", 66, 50)
		r.settle()
		r.until("the pipeline has a format", func() bool { return r.formatRow() != nil })
		if want := cmp.Or(restored, checkpoint.Format); r.formatRow().Log != want {
			t.Errorf("restored as %d: the pipeline has %+v", restored, r.formatRow())
		}
		if got := r.table("Orders").LogFormat; got != checkpoint.Format {
			t.Errorf("restored as %d: log of format %d", restored, got)
		}
		r.equal()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
