package cutover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// TestTableThatMayStillBeReplicatedIsNotRetired: one that is configured must be fenced, and no dead
// letter is lost without a word.
func TestTableThatMayStillBeReplicatedIsNotRetired(t *testing.T) {
	fenced := &bigtable.State{Fenced: &bigtable.Fenced{ID: "f"}}
	log := []queue.Kept{{What: "log"}}
	for name, c := range map[string]struct {
		table   string // Orders is configured
		row     *bigtable.State
		streams []queue.Kept
		letters uint64
		drop    bool
		want    string
	}{
		"configured":                      {"Orders", &bigtable.State{}, log, 0, false, "configured and not fenced"},
		"configured, without a log":       {"Orders", &bigtable.State{}, nil, 0, false, "configured and not fenced"},
		"configured, without a row":       {"Orders", nil, log, 0, false, "configured and not fenced"},
		"configured, nothing kept":        {"Orders", nil, nil, 0, false, ""},
		"configured, fenced":              {"Orders", fenced, log, 0, false, ""},
		"not configured":                  {"Old", &bigtable.State{}, log, 0, false, ""},
		"not configured, without a row":   {"Old", nil, log, 0, false, ""},
		"with letters":                    {"Old", fenced, log, 3, false, "3 dead letters"},
		"with letters that are waived":    {"Old", fenced, log, 3, true, ""},
		"configured, with letters waived": {"Orders", &bigtable.State{}, log, 3, true, "configured and not fenced"},
	} {
		r := &Retirement{RetireOptions: RetireOptions{Table: c.table, DropLetters: c.drop}, row: c.row,
			cfg: &config.Config{Tables: []config.Table{{Source: "Other", Target: "o"}, {Source: "Orders", Target: "o"}}}}
		r.Kept.Streams, r.Kept.Letters = c.streams, c.letters
		err := r.refuse(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnerThatOnlySeemsSilentKeepsItsTable, Rule 13: a wrong time makes every beat look old, and
// that the next one comes shows that the owner lives.
func TestOwnerThatOnlySeemsSilentKeepsItsTable(t *testing.T) {
	server, err := nats.Open(nats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", URL: server.URL(), MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	var w *queue.Writer
	log, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	if err == nil {
		w, err = log.Claim(t.Context(), queue.ClaimOptions{Owner: "a"})
	}
	if err == nil {
		_, err = w.Append(t.Context(), &checkpoint.Beat{Date: 1}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	const later = change.Millis(60 * 60_000)
	looks, date := 0, change.Millis(1)
	r := &Retirement{
		RetireOptions: RetireOptions{Table: "Orders", Now: func() time.Time {
			if looks++; looks == 2 {
				date++
				if _, err := w.Append(t.Context(), &checkpoint.Beat{Date: date}, nil); err != nil { // the owner's time is right
					t.Error(err)
				}
			}
			return later.Time()
		}},
		queue: q, cfg: &config.Config{Protocol: config.Protocol{ClaimTTL: config.Duration(time.Minute)}},
	}
	for what, check := range map[string]func(context.Context) error{"plan": r.checkOwner, "run": r.Run} {
		looks = 0
		if err := check(t.Context()); err == nil || !strings.Contains(err.Error(), "replicator a carries table Orders") {
			t.Errorf("%s: the owner of the log lives: %v", what, err)
		}
	}
}

// TestNothingIsKept: only where none of what retire takes away is there.
func TestNothingIsKept(t *testing.T) {
	if k := (&Kept{Table: "T", Target: "t", Guards: &Guards{Others: 3, Unknown: 1}}); !k.Nothing() {
		t.Error("guards of others count")
	}
	for name, k := range map[string]*Kept{
		"row": {Row: true}, "stream": {Streams: []queue.Kept{{}}}, "files": {Files: []string{"x"}},
		"guards": {Guards: &Guards{Cells: 1}},
	} {
		if k.Nothing() {
			t.Errorf("%s: nothing is kept", name)
		}
	}
}

// TestOnlyADamagedLogIsGivenUp, Rule 13: whatever else keeps a log from being read may be over
// soon.
func TestOnlyADamagedLogIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&queue.DamageError{From: 1, To: 2, Last: 2}, true},
		{fmt.Errorf("open log: %w", queue.ErrUnopened), true},
		{queue.ErrEmptied, true},
		{&queue.VolumeError{Stream: "s", Why: syscall.EIO}, false},
		{&checkpoint.NewerFormatError{}, false},
		{natsgo.ErrTimeout, false},
		{context.DeadlineExceeded, false},
	} {
		if got := damaged(fmt.Errorf("fold log: %w", c.err)); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}

// Rule 13: a table is given up with a log that is damaged, and not with one whose volume gives
// errors for a while.
func TestLogOfAVolumeThatIsAwayIsNotGivenUp(t *testing.T) {
	dir := t.TempDir()
	open := func() *queue.Queue {
		t.Helper()
		q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", Dir: dir}, zap.NewNop(),
			prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	l, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	var w *queue.Writer
	if err == nil {
		w, err = l.Claim(t.Context(), queue.ClaimOptions{Owner: "a", TTL: time.Second, Alone: true})
	}
	if err == nil {
		_, err = w.Append(t.Context(), &checkpoint.Beat{Date: 1}, nil)
	}
	if err = errors.Join(err, q.Close()); err != nil {
		t.Fatal(err)
	}
	for _, away := range []bool{true, false} {
		blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
		if err != nil || len(blocks) == 0 {
			t.Fatal(blocks, err)
		}
		kept := filepath.Join(t.TempDir(), "kept")
		if away {
			err = errors.Join(os.Rename(blocks[0], kept), os.Symlink(blocks[0], blocks[0])) // nobody can open it
		}
		if err != nil {
			t.Fatal(err)
		}
		q := open()
		r := &Retirement{RetireOptions: RetireOptions{Table: "Orders"}, queue: q, sink: &bigtable.Client{}}
		if err := r.checkUnapplied(t.Context()); (err != nil) != away {
			t.Errorf("away %t: %v", away, err)
		} else if away && !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("the refusal is %v", err)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if away {
			if err := errors.Join(os.Remove(blocks[0]), os.Rename(kept, blocks[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
}
