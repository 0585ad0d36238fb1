package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// stored is a configuration and a store with the log of one table, Orders, that no daemon has open.
type stored struct {
	t      *testing.T
	dir    string
	config string
}

// newStored returns a store whose log holds a start and then the entries.
func newStored(t *testing.T, entries ...any) *stored {
	t.Helper()
	s := &stored{t: t, dir: t.TempDir()}
	s.config = filepath.Join(s.dir, "tailrace.yaml")
	text := `
pipeline: shop
source: {region: eu-west-1, endpoint: "http://127.0.0.1:1"}
bigtable: {project: local, instance: local, endpoint: "127.0.0.1:1"}
queue: {dir: ./data}
admin: {listen: "127.0.0.1:0"}
tables: [{source: Orders, target: orders}]
`
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start := &checkpoint.Start{
		Stream: "arn:stream", Mode: "trim_horizon", Date: now, Shards: []checkpoint.ShardSeen{{ID: "a"}},
	}
	marks := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {}}}
	s.append(append([]any{start, marks}, entries...)...)
	return s
}

// now is a time of the service in the entries of a log.
const now change.Millis = 1_790_000_000_000

// append appends entries as the log's owner.
func (s *stored) append(entries ...any) {
	s.t.Helper()
	ctx := s.t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: filepath.Join(s.dir, "data")}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		if l, err = q.CreateLog(ctx, "Orders", "t0ken"); err != nil {
			s.t.Fatal(err)
		}
	}
	w, err := l.Claim(ctx, queue.ClaimOptions{Owner: fmt.Sprint("owner", len(entries)), TTL: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := w.Append(ctx, e, nil); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := w.Release(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a command line; it must end with the exit code, and what it prints must match the
// pattern.
func (s *stored) run(line string, code int, pattern string) string {
	s.t.Helper()
	var out, errs bytes.Buffer
	got := execute(s.t.Context(), append(strings.Fields(line), "-c", s.config), &out, &errs)
	said := out.String() + errs.String()
	if got != code || !regexp.MustCompile(pattern).MatchString(said) {
		s.t.Errorf("%s: exit %d, want %d; want %q in:\n%s", line, got, code, pattern, said)
	}
	return said
}

// TestCopyIsPausedResumedAndCancelledThroughTheLog: with no daemon running, so that the next one
// obeys it.
func TestCopyIsPausedResumedAndCancelledThroughTheLog(t *testing.T) {
	s := newStored(t)
	s.run("copy pause --table Orders", 3, "Orders is not being copied")
	s.append(&checkpoint.Copy{ID: "c1", Why: "backfill", From: "scan", Parts: 2, Began: now + 2000, Items: 1000},
		&checkpoint.CopyMarks{ID: "c1", Parts: map[int]checkpoint.CopyMark{0: {Items: 410, Bytes: 41000}}, Date: now + 9000})
	s.run("copy pause --table Orders", 0, "The copy of Orders is paused")
	s.run("copy resume --table Orders --json", 0,
		`^\{"action":"copy resume","copy":"c1","schema":1,"seq":\d+,"table":"Orders"\}\n$`)
	s.run("copy cancel --table Orders", 0, "The copy of Orders is cancelled")
	s.run("copy cancel --table Orders", 3, "Orders is not being copied")
	s.run("gaps list", 0, `accepted +bigtable differs +copy cancelled`)
}

// TestCopyIsDelegatedAndTakenBackThroughTheLog: of an export alone, and once at a time. Status
// shows the command for the workers.
func TestCopyIsDelegatedAndTakenBackThroughTheLog(t *testing.T) {
	s := newStored(t)
	s.append(&checkpoint.Copy{ID: "c0", Why: "backfill", From: "scan", Parts: 2, Began: now + 2000})
	s.run("copy delegate --table Orders", 3, "the copy of Orders reads the table, and workers read an export")
	s.run("copy cancel --table Orders", 0, "cancelled")
	s.append(&checkpoint.Copy{
		ID: "c1", Why: "backfill", From: "export", Export: "e", Parts: 2, Began: now + 2000, Version: 9,
	})
	s.run("copy takeback --table Orders", 3, "no workers copy Orders")
	s.run("copy delegate --table Orders", 0, "Workers may copy Orders now")
	s.run("copy delegate --table Orders", 3, "workers copy Orders already")
	s.run("status --json", 0, `"workers":\{"order":"c1\.\d+","closing":false,"command":"replicator-bulk copy `+
		`--pipeline PIPELINE --table TABLE --bigtable local/local"\}`)
	// The log has no identity.
	s.run("status", 0, "by workers: `replicator-bulk copy --pipeline PIPELINE --table TABLE --bigtable local/local`")
	s.run("copy takeback --table Orders --json", 0, `"action":"copy takeback","copy":"c1"`)
	s.run("status", 0, "the workers end")
	s.append(&checkpoint.CopyMarks{ID: "c1", Closed: true, Paused: "too old", Date: now + 9000})
	s.run("copy delegate --table Orders", 3, "the copy of Orders has paused itself")
}

// TestGapsAreHealedByAnOrderInTheLog: heal accepts them, list shows them as healing until the owner
// is done, then as healed with what is still missing.
func TestGapsAreHealedByAnOrderInTheLog(t *testing.T) {
	gap := &checkpoint.Gap{
		Feed: change.Feed{Stream: "arn:stream", Shard: "a"}, Since: now - 5000, Until: now, Found: now + 1, Reason: "trimmed",
	}
	s := newStored(t)
	s.run("gaps heal", 0, "^No gaps to heal")
	s.run("gaps heal --json", 0, `^\{"healing":\[\],"schema":1\}\n$`)
	s.append(gap)
	s.run("gaps heal nosuchgap", 2, `no gap "nosuchgap"`)
	s.run("gaps clear --sink bigtable --yes "+gap.ID(), 3, "is open")
	s.run("gaps heal --json "+gap.ID(), 0, `"state":"healing","sinks":\{"bigtable":"differs"\}`)
	s.run("gaps list", 0, "healing +bigtable differs")
	order := s.pending()
	s.run("gaps heal", 0, "^Gap "+gap.ID()+" of Orders is being healed")
	if got := s.pending(); got != order {
		t.Errorf("the comparison that heals the gap begins again: %s, %s", order, got)
	}
	s.append(&checkpoint.Healed{ID: s.pending(), Gaps: []string{gap.ID()}, Date: now + 60_000,
		Sinks: map[string]string{"bigtable": "but for versions between"}})
	s.run("gaps list", 0, "healed +bigtable healed, but for versions between")
	s.run("gaps heal", 0, "^No gaps to heal")
	s.run("resync --table Orders", 0, "Orders is being resynced")
	if s.pending() == "" {
		t.Error("no resync is pending")
	}
}

// pending returns the id of the resync that the log holds.
func (s *stored) pending() string {
	s.t.Helper()
	q, err := queue.Open(s.t.Context(), queue.Options{Pipeline: "shop", Dir: filepath.Join(s.dir, "data")}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(s.t.Context(), "Orders")
	if err != nil {
		s.t.Fatal(err)
	}
	state, err := l.Fold(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if state.Resync == nil {
		return ""
	}
	return state.Resync.ID
}
