package test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSignalDrainsWhatWasRead(t *testing.T) {
	w := newWorld(t, 101)
	w.prepare("Orders")
	a := w.writer("Orders", 101)
	a.write(200)
	p := w.traps.set(beforeWrite, 1, true)
	d := w.run()
	d.untilHit(p)
	d.until("all changes are in the log", func() bool { return d.table("Orders").Changes == w.committed("Orders") })
	d.signal()
	d.untilLogged("no more reading")
	out := d.output.String()
	if i := strings.Index(out, `"signal":"SIGTERM"`); i < 0 || i > strings.Index(out, "no more reading") {
		t.Errorf("the log does not begin the shutdown with its reason: %s", out)
	}
	p.open()
	if code := d.exit(); code != 0 {
		t.Errorf("exit %d after SIGTERM, want 0", code)
	}
	l := w.readLog("Orders")
	if mark := l.state.Marks["bigtable"].Seq; mark < l.state.LastFrame || !l.state.Released {
		t.Errorf("mark %d, last changes %d, released %v: want all of it saved", mark, l.state.LastFrame, l.state.Released)
	}
	w.Equal("Orders")
}

func TestSignalEndsInTimeWithoutBigtable(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 102)
	w.shutdown = time.Second
	w.prepare("Orders")
	a := w.writer("Orders", 102)
	d := w.run()
	d.settle("Orders")
	w.Bigtable.Faults.Outage(0)
	a.write(100)
	d.until("all changes are in the log", func() bool { return d.table("Orders").Changes == w.committed("Orders") })
	d.stop()
	w.Bigtable.Faults.Recover()
	d = w.run()
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	w := newWorld(t, 103)
	w.shutdown = time.Hour
	w.prepare("Orders")
	a := w.writer("Orders", 103)
	a.write(50)
	p := w.traps.set(beforeWrite, 1, true)
	d := w.run()
	d.untilHit(p)
	d.signal()
	d.untilLogged("no more reading")
	w.Until("a further signal ends it", func() bool {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.ended:
			return true
		default:
			return false
		}
	})
	if s, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v, want the second signal to end it", d.cmd.ProcessState)
	}
	p.open()
	d = w.run()
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

func TestDrainAndExit(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t, 104)
	w.prepare("Orders")
	a := w.writer("Orders", 104)
	for range 2 {
		a.write(100)
		w.ok("run", "--drain-and-exit")
		w.Equal("Orders")
	}
	w.logIsExact("Orders", w.readLog("Orders"))
}

// committed returns the number of changes in the stream of a table.
func (w *world) committed(table string) uint64 {
	_, streamed := w.Ledger.Count(table)
	return uint64(streamed)
}
