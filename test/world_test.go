package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

const (
	// patience is the longest wait without progress: while the daemon makes no calls but empty
	// polls.
	patience = 60 * time.Second
	// longest bounds a wait with progress. It is long because a busy machine slows everything down.
	longest = 15 * patience
)

// world is a sandbox and a directory, which outlive the daemons that run on them. Between the
// daemons and the servers are taps, where a test can observe and hold every call.
type world struct {
	*sandbox.World
	t   *testing.T
	dir string

	dynamo   *httpTap
	bigtable *grpcTap
	traps    *traps

	// The configuration beside the endpoints, each a value in YAML on one line.
	start    string
	idlePoll string
	queue    string
	admin    string
	archive  string
	tracing  string
	shutdown time.Duration
	testing  string
	secret   string // that seals keys; empty: none
	tables   []string
	shared   bool     // rows of Orders hold several items
	binary   string   // of the replicator that is run; empty: the one under test
	more     []string // variables of the environment of each process
}

// shareRows gives Orders a mapping by which several items share a row and name their columns
// (by-diff).
func (w *world) shareRows() {
	w.t.Helper()
	w.shared = true
	w.write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml, backfill: none}"}
}

// newWorld starts a world that ends with the test, and makes the test parallel: worlds share
// nothing.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	return newWorldOf(t, sandbox.Options{Seed: seed})
}

// newWorldOf is newWorld with options of the sandbox.
func newWorldOf(t *testing.T, o sandbox.Options) *world {
	t.Helper()
	t.Parallel()
	w := &world{
		t: t, dir: t.TempDir(), traps: &traps{},
		start: "trim_horizon", idlePoll: "100ms", admin: "127.0.0.1:0", queue: "{dir: ./data, max_bytes: 64MiB}",
		shutdown: 20 * time.Second, testing: periods("300ms"),
		tables: []string{"{source: Orders, target: orders}"},
	}
	w.World = sandbox.NewWorld(t, sandbox.WorldOptions{
		Options: o,
		Compare: func(ctx context.Context, table string) error { return w.openPair().compare(ctx, table) },
	})
	w.Watch.Progress = w.traps.progress.Load
	w.Watch.Patience, w.Watch.Longest = patience, longest
	w.Watch.Every = 40 * time.Millisecond // a look at the status takes more from daemon and test than an idle table does
	w.dynamo = newHTTPTap(t, w.traps, w.DynamoDB)
	w.bigtable = newGRPCTap(t, w.traps, w.Bigtable.Addr())
	return w
}

// periods returns short periods for the key `testing` of the configuration, with the one after
// which a halted table is tried again.
func periods(retryHalted string) string {
	return "{claim_ttl: 2s, beat: 100ms, listing: 500ms, describe: 200ms, mark_interval: 50ms, trim: 500ms, " +
		"date_trust: 1ns, patience: 300ms, retry_halted: " + retryHalted + "}"
}

// configure writes the configuration. Running daemons keep the one that they have read.
func (w *world) configure() {
	w.t.Helper()
	text := fmt.Sprintf("pipeline: shop\nsource: {region: us-east-1, endpoint: %q, idle_poll: %s, start: %q}\n"+
		"bigtable: {project: local, instance: local, endpoint: %q}\n"+
		"queue: %s\nadmin: {listen: %q}\nshutdown_timeout: %s\ntesting: %s\n",
		w.dynamo.url, w.idlePoll, w.start, w.bigtable.addr, w.queue, w.admin, w.shutdown, w.testing)
	if w.archive != "" {
		text += "archive: " + w.archive + "\n"
	}
	if w.secret != "" {
		text += fmt.Sprintf("pii_secrets: [%q]\n", w.secret)
	}
	if w.tracing != "" {
		text += "tracing: " + w.tracing + "\n"
	}
	text += "tables:\n"
	for _, table := range w.tables {
		text += "- " + table + "\n"
	}
	w.write("tailrace.yaml", text)
}

// write writes a file into the directory that the daemons run in.
func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// prepare writes the configuration and creates the source tables and their targets.
func (w *world) prepare(tables ...string) {
	w.t.Helper()
	for _, name := range tables {
		w.CreateTable(name)
		w.Call("UpdateTimeToLive", fmt.Sprintf(`{"TableName":%q,
			"TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`, name))
	}
	w.configure()
	w.ok("schema", "--apply")
}

// result is the exit code and the output of a command.
type result struct {
	code     int
	out, err string
}

// command runs a command of replicator until it ends.
func (w *world) command(args ...string) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program(), args...)
	cmd.Dir, cmd.Env = w.dir, w.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		w.t.Fatalf("replicator %v: %v", args, err)
	}
	if ctx.Err() != nil {
		w.t.Fatalf("replicator %v: not done in time\n%s%s", args, &out, &errs)
	}
	w.raceFree(errs.String())
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
}

// ok runs a command that must exit with 0, and returns its stdout.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	r := w.command(args...)
	if r.code != 0 {
		w.t.Fatalf("replicator %v: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r.out
}

// refused runs a command that must exit with a code and name what on stderr.
func (w *world) refused(code int, what string, args ...string) {
	w.t.Helper()
	if r := w.command(args...); r.code != code || !strings.Contains(r.err, what) {
		w.t.Errorf("replicator %v: exit %d, want %d and %q\n%s%s", args, r.code, code, what, r.out, r.err)
	}
}

// program returns the path of the replicator under test.
func (w *world) program() string {
	w.t.Helper()
	if w.binary != "" {
		return w.binary
	}
	path, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// env returns the environment of a process under test. The race detector's runtime would let each
// process sleep for a second before it exits.
func (w *world) env() []string {
	return append(append(os.Environ(), "AWS_EC2_METADATA_DISABLED=true", "GORACE=exitcode=66 atexit_sleep_ms=0",
		"HOME="+w.dir), w.more...)
}

// raceFree fails the test when the output of a process reports a data race.
func (w *world) raceFree(output string) {
	w.t.Helper()
	if at := strings.Index(output, "DATA RACE"); at >= 0 {
		w.t.Errorf("the race detector found:\n%s", output[at:min(len(output), at+6000)])
	}
}
