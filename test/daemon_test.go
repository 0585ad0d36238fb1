package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// daemon is a running `replicator run`.
type daemon struct {
	w      *world
	cmd    *exec.Cmd
	output *output
	ended  chan struct{} // closed when the process has ended
	admin  string        // address of the admin server, once it is in the log
}

// output collects what a process writes on stdout and stderr, for concurrent use.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *output) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *output) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// run starts `replicator run`. The cleanup of the test kills it.
func (w *world) run(args ...string) *daemon {
	w.t.Helper()
	d := &daemon{w: w, output: &output{}, ended: make(chan struct{})}
	w.Watch.State = d.state
	d.cmd = exec.Command(w.program(), append([]string{"run"}, args...)...)
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr, d.cmd.Stdout = w.dir, w.env(), d.output, d.output
	if err := d.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // exit code and signal are read from ProcessState
	}()
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		w.raceFree(d.output.String())
		countLogged(w.traps.chances, d.output.String())
		if w.t.Failed() {
			w.t.Logf("output of replicator %d:\n%s", d.cmd.Process.Pid, tail(d.output.String(), 60))
		}
	})
	return d
}

// state returns what a wait that fails prints: what the daemon says of itself, and then the end of
// its output.
func (d *daemon) state() any {
	_, status := d.get("/status")
	return fmt.Sprintf("%s\n%s", status, tail(d.output.String(), 5))
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kill sends SIGKILL and waits for the end. It fails the test when the daemon had ended before by
// itself.
func (d *daemon) kill() {
	d.w.t.Helper()
	_ = d.cmd.Process.Kill()
	<-d.ended
	if s, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		d.w.t.Fatalf("the daemon had ended before it was killed: %v\n%s", d.cmd.ProcessState, tail(d.output.String(), 20))
	}
}

// signal sends SIGTERM.
func (d *daemon) signal() {
	d.w.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.w.t.Fatal(err)
	}
}

// exit waits until the daemon has ended and returns its exit code.
func (d *daemon) exit() int {
	d.w.t.Helper()
	d.w.Until("the daemon ends", func() bool {
		select {
		case <-d.ended:
			return true
		default:
			return false
		}
	})
	return d.cmd.ProcessState.ExitCode()
}

// stop ends the daemon as an orchestrator does, by SIGTERM. It must exit with 0, that is, with all
// progress stored.
func (d *daemon) stop() {
	d.w.t.Helper()
	d.signal()
	if code := d.exit(); code != 0 {
		d.w.t.Fatalf("exit %d after SIGTERM\n%s", code, tail(d.output.String(), 20))
	}
}

// until waits until condition returns true. It fails the test when the daemon ends before.
func (d *daemon) until(what string, condition func() bool) {
	d.w.t.Helper()
	d.w.Until(what, func() bool {
		select {
		case <-d.ended:
			d.w.t.Fatalf("waiting until %s: the daemon ended: %v\n%s", what, d.cmd.ProcessState, tail(d.output.String(), 20))
		default:
		}
		return condition()
	})
}

// untilLogged waits until the daemon has logged a text.
func (d *daemon) untilLogged(text string) {
	d.w.t.Helper()
	d.until("it logs "+text, func() bool { return strings.Contains(d.output.String(), text) })
}

// get sends a GET to the admin server. code is 0 while it does not answer.
func (d *daemon) get(path string) (code int, body []byte) {
	if d.admin == "" {
		d.admin = d.address()
	}
	if d.admin == "" {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(d.w.t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.admin+path, nil)
	if err != nil {
		d.w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	b := &bytes.Buffer{}
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return 0, nil
	}
	return resp.StatusCode, b.Bytes()
}

// address returns the address of the admin server from the daemon's log, "" before it listens.
func (d *daemon) address() string {
	for _, line := range strings.Split(d.output.String(), "\n") {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "admin server listens" {
			return entry.Address
		}
	}
	return ""
}

// status returns the reply of /status; ok is false while the daemon does not answer.
func (d *daemon) status() (s pipeline.Status, ok bool) {
	code, body := d.get("/status")
	if code != http.StatusOK || json.Unmarshal(body, &s) != nil || len(s.Tables) == 0 {
		return s, false
	}
	return s, true
}

// table returns the status of one table, the zero value while the daemon does not answer.
func (d *daemon) table(name string) pipeline.TableStatus {
	s, _ := d.status()
	for _, t := range s.Tables {
		if t.Source == name {
			return t
		}
	}
	return pipeline.TableStatus{}
}

// settle waits until all writes so far to the tables are applied, and items that are older than the
// stream are copied. It advances the sandbox's clock, because the watermark has a resolution of
// seconds and real ones would have to pass.
func (d *daemon) settle(tables ...string) {
	d.w.t.Helper()
	now, jump := d.w.Clock.Now(), 2*time.Second
	if d.w.Clock.Virtual() {
		jump = 10 * time.Second // a virtual clock stands still between calls
	}
	d.w.Clock.Advance(jump)
	for _, name := range tables {
		d.until("everything written to "+name+" is applied", func() bool {
			st := d.table(name)
			if st.Copy != nil && d.w.Clock.Virtual() {
				d.w.Clock.Advance(time.Second)
			}
			return st.Copy == nil && st.AppliedThrough != nil && st.AppliedThrough.After(now)
		})
	}
}

// hasten moves the sandbox's clock on, no faster than Orders is applied: a page of a copy that
// waits for more than five minutes is read again. Behind a gap a table stays where it is, and
// behind a fence it is only read.
func (d *daemon) hasten(step time.Duration) {
	lag, st := time.Duration(0), d.table("Orders")
	switch {
	case st.Fence != nil:
		lag = time.Duration(st.SourceLag * float64(time.Second))
	case st.AppliedThrough != nil:
		lag = d.w.Clock.Now().Sub(*st.AppliedThrough)
	}
	if lag > 30*time.Second && lag < time.Hour {
		return
	}
	d.w.Clock.Advance(step)
}

// checkClean waits until the daemon is ready, and checks that nothing was lost or refused.
func (d *daemon) checkClean() {
	d.w.t.Helper()
	var s pipeline.Status
	d.until("it is ready", func() bool {
		var ok bool
		s, ok = d.status()
		return ok && s.Ready
	})
	for _, t := range s.Tables {
		if t.Gaps+t.Accepted+t.DeadLetters > 0 || t.Foreign > 0 {
			d.w.t.Errorf("table %s: %d gaps, %d accepted, %d dead letters, %d foreign messages",
				t.Source, t.Gaps, t.Accepted, t.DeadLetters, t.Foreign)
		}
	}
}
