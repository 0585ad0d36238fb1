package test

import (
	"bytes"
	"context"
	"encoding/json"
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
	w     *world
	cmd   *exec.Cmd
	said  *said
	ended chan struct{} // closed when the process is gone
	admin string        // its address, once it has said so
}

// said collects what a process writes on stderr.
type said struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// run starts a daemon, which is gone when the test ends.
func (w *world) run(args ...string) *daemon {
	w.t.Helper()
	d := &daemon{w: w, said: &said{}, ended: make(chan struct{})}
	d.cmd = exec.Command(w.program(), append([]string{"run"}, args...)...)
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr, d.cmd.Stdout = w.dir, w.env(), d.said, d.said
	if err := d.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait() // ProcessState says all of it
	}()
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		w.raceFree(d.said.String())
		if w.t.Failed() {
			w.t.Logf("replicator %d said:\n%s", d.cmd.Process.Pid, tail(d.said.String(), 60))
		}
	})
	return d
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kill is kill -9. The daemon must not have ended before by itself.
func (d *daemon) kill() {
	d.w.t.Helper()
	_ = d.cmd.Process.Kill()
	<-d.ended
	if s, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		d.w.t.Fatalf("the daemon had ended before it was killed: %v\n%s", d.cmd.ProcessState, tail(d.said.String(), 20))
	}
}

// signal asks the daemon to end.
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

// stop ends the daemon as an orchestrator does; it must have saved everything.
func (d *daemon) stop() {
	d.w.t.Helper()
	d.signal()
	if code := d.exit(); code != 0 {
		d.w.t.Fatalf("exit %d after SIGTERM\n%s", code, tail(d.said.String(), 20))
	}
}

// until waits for an observed fact while the daemon runs.
func (d *daemon) until(what string, fact func() bool) {
	d.w.t.Helper()
	d.w.Until(what, func() bool {
		select {
		case <-d.ended:
			d.w.t.Fatalf("waiting until %s: the daemon ended: %v\n%s", what, d.cmd.ProcessState, tail(d.said.String(), 20))
		default:
		}
		return fact()
	})
}

// saying waits until the daemon has logged a message.
func (d *daemon) saying(what string) {
	d.w.t.Helper()
	d.until("it says "+what, func() bool { return strings.Contains(d.said.String(), what) })
}

// get asks the admin server; 0 while it does not answer.
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

// address is where the admin server listens, as the daemon logged it.
func (d *daemon) address() string {
	for _, line := range strings.Split(d.said.String(), "\n") {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "admin server listens" {
			return entry.Address
		}
	}
	return ""
}

// status is what the daemon says about its tables; false while it does not answer.
func (d *daemon) status() (s pipeline.Status, ok bool) {
	code, body := d.get("/status")
	if code != http.StatusOK || json.Unmarshal(body, &s) != nil || len(s.Tables) == 0 {
		return s, false
	}
	return s, true
}

// table is the status of one table; its zero value while the daemon does not answer.
func (d *daemon) table(name string) pipeline.TableStatus {
	s, _ := d.status()
	for _, t := range s.Tables {
		if t.Source == name {
			return t
		}
	}
	return pipeline.TableStatus{}
}

// settle waits until everything that was written to a table so far is applied. It moves the sandbox's clock on, so
// that it need not wait for whole seconds to pass.
func (d *daemon) settle(tables ...string) {
	d.w.t.Helper()
	now, jump := d.w.Clock.Now(), 2*time.Second
	if d.w.Clock.Virtual() {
		jump = 10 * time.Second // it does not run on by itself
	}
	d.w.Clock.Advance(jump)
	for _, name := range tables {
		d.until("everything written to "+name+" is applied", func() bool {
			at := d.table(name).AppliedThrough
			return at != nil && at.After(now)
		})
	}
}

// clean checks that the daemon is ready, and that nothing was lost or refused.
func (d *daemon) clean() {
	d.w.t.Helper()
	var s pipeline.Status
	d.until("it is ready", func() bool {
		var ok bool
		s, ok = d.status()
		return ok && s.Ready
	})
	for _, t := range s.Tables {
		if t.Gaps+t.Accepted+t.DeadLetters > 0 || t.Foreign > 0 {
			d.w.t.Errorf("table %s: %d gaps, %d accepted, %d dead letters, %d foreign messages", t.Source, t.Gaps, t.Accepted, t.DeadLetters, t.Foreign)
		}
	}
}
