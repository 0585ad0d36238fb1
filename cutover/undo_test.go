package cutover_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// store is the embedded store of a table that is fenced, in its log and in its row, and that nobody
// owns.
type store struct {
	*testing.T
	dir  string
	sink *bigtable.Client
}

// newStore writes a log: a start, a fence, and a beat on each side of it.
func newStore(t *testing.T, seed uint64) *store {
	t.Helper()
	t.Parallel()
	w := daemontest.New(t, seed)
	w.Configure("{source: Orders, target: orders, backfill: none}")
	w.Prepare("Orders")
	s := &store{T: t, dir: t.TempDir(), sink: w.Sink(w.Clients())}
	ctx, q := t.Context(), s.open()
	defer q.Close()
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := log.Claim(ctx, queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	const now = change.Millis(1_790_000_000_000)
	for _, e := range []any{
		&checkpoint.Start{Stream: "arn:stream", Mode: "trim_horizon", Date: now, Shards: []checkpoint.ShardSeen{{ID: "a"}}},
		&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: {}}},
		&checkpoint.Beat{Date: now + 1111},
		&checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "f1"}, At: now + 2000},
		&checkpoint.Beat{Date: now + 3333},
		&checkpoint.Beat{Date: now + 4000}, // where the newest entry is damaged, a fold looks for other copies of it
	} {
		if _, err := owner.Append(ctx, e, nil); err != nil {
			t.Fatal(err)
		}
	}
	row := &bigtable.State{Identity: bigtable.Identity{Pipeline: "shop", Table: "Orders"}, Life: 1, Issued: true,
		Fenced: &bigtable.Fenced{ID: "f1", Time: now.Time()}}
	if err := s.sink.CreateState(ctx, row); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *store) open() *queue.Queue {
	s.Helper()
	q, err := queue.Open(s.Context(), queue.Options{Pipeline: "shop", Dir: s.dir}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		s.Fatal(err)
	}
	return q
}

// damage flips a byte of the entry that holds a text.
func (s *store) damage(text string) {
	s.Helper()
	blocks, err := filepath.Glob(filepath.Join(s.dir, "jetstream", "*", "streams", "*Orders*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		s.Fatalf("%d blocks: %v", len(blocks), err)
	}
	b, err := os.ReadFile(blocks[0])
	if err != nil {
		s.Fatal(err)
	}
	at := bytes.Index(b, []byte(text))
	if at < 0 {
		s.Fatalf("no entry holds %q", text)
	}
	b[at] ^= 0x40
	if err := os.WriteFile(blocks[0], b, 0o600); err != nil {
		s.Fatal(err)
	}
}

// undo takes the fence away with the store open.
func (s *store) undo(q *queue.Queue) ([]cutover.Undone, error) {
	return cutover.Undo(s.Context(), q, s.sink, "shop", []string{"Orders"})
}

// undoes returns whether there is something for an undo to take away.
func (s *store) undoes(q *queue.Queue) bool {
	s.Helper()
	fenced, err := cutover.Fenced(s.Context(), q, s.sink, "shop", []string{"Orders", "Never"})
	if err != nil {
		s.Fatal(err)
	}
	return len(fenced) == 1 && fenced[0] == "Orders"
}

// fenced reports whether the row is fenced.
func (s *store) fenced() bool {
	s.Helper()
	row, err := s.sink.LoadState(s.Context(), "shop", "Orders")
	if err != nil {
		s.Fatal(err)
	}
	return row.Fenced != nil
}

// A fenced table whose log is damaged: everything that lets the log go on is refused while the row
// is fenced, so the undo takes that fence away, and says that the log could not be read. When the
// log goes on, before the damage, it has the fence or not; the same command again takes away what
// there is.
func TestUndoOverADamagedLog(t *testing.T) {
	for name, c := range map[string]struct {
		seed  uint64
		entry string
		left  bool // the fence is before the damage
	}{"before the fence": {931, `1790000001111`, false}, "behind it": {932, `1790000003333`, true}} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, c.seed)
			s.damage(c.entry)
			q := s.open()
			defer q.Close()
			if !s.undoes(q) {
				t.Error("the fence of the row is not found")
			}
			done, err := s.undo(q)
			if err != nil || len(done) != 1 || done[0].ID != "f1" || !strings.Contains(done[0].Unread, "cannot be read") {
				t.Fatalf("undo: %+v, %v", done, err)
			}
			if s.fenced() {
				t.Error("the row is still fenced")
			}
			log, err := q.Log(t.Context(), "Orders")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := log.AppendControl(t.Context(), &checkpoint.Control{Resume: true}); err != nil {
				t.Fatal(err)
			}
			state, err := log.Fold(t.Context())
			if err != nil || (state.Fence != nil) != c.left {
				t.Fatalf("resumed: fence %+v, %v", state.Fence, err)
			}
			if s.undoes(q) != c.left {
				t.Errorf("an undo takes a fence away: %v", !c.left)
			}
			done, err = s.undo(q)
			if err != nil || (len(done) == 1) != c.left || c.left && done[0].Unread != "" {
				t.Errorf("undo again: %+v, %v", done, err)
			}
			if state, err = log.Fold(t.Context()); err != nil || state.Fence != nil {
				t.Errorf("in the end: fence %+v, %v", state.Fence, err)
			}
		})
	}
}

// A log that a newer build has written is not damaged: that build can read it, so nothing is
// changed, and the error says so.
func TestUndoOverALogOfANewerBuild(t *testing.T) {
	s := newStore(t, 933)
	q := s.open()
	defer q.Close()
	js, err := jetstream.New(q.Conn())
	if err != nil {
		t.Fatal(err)
	}
	for info := range js.ListStreams(t.Context()).Info() {
		if !strings.Contains(info.Config.Name, "Orders") {
			continue
		}
		entry := append([]byte("TRLG"), byte(checkpoint.Format+1), 'b')
		if _, err := js.Publish(t.Context(), info.Config.Subjects[0], entry); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := s.undo(q); err == nil || len(done) > 0 || !strings.Contains(err.Error(), "upgrade the replicator") {
		t.Errorf("undo: %+v, %v", done, err)
	}
	if !s.fenced() {
		t.Error("the row is not fenced any more")
	}
}

// An undo stands still before its last step. Another one ends, and another cutover fences the table
// and certifies it: the undo that goes on leaves the fence of that one.
func TestUndoLeavesTheFenceOfAnotherCutover(t *testing.T) {
	s := newStore(t, 934)
	for _, c := range []struct {
		id     string
		fenced bool
	}{{"f0", true}, {"", true}, {"f1", false}, {"f1", false}} {
		if err := cutover.UnfenceRow(t.Context(), s.sink, "shop", "Orders", c.id); err != nil {
			t.Fatal(err)
		}
		if s.fenced() != c.fenced {
			t.Errorf("undo of %q: fenced %v", c.id, s.fenced())
		}
	}
}
