package queue

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// flip changes one byte of a stored entry while nobody has the store open.
func flip(t *testing.T, dir string, entry []byte) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks: %v", len(blocks), err)
	}
	for _, block := range blocks {
		b, err := os.ReadFile(block)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, entry); at >= 0 {
			b[at+len(entry)/2] ^= 0x40
			if err := os.WriteFile(block, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the entry is in no block")
}

// flipped makes a log of ten pages of five changes and spoils one of them, counted from 0. It returns the log as the next
// process finds it, and the spoilt entry's sequence.
func flipped(t *testing.T, page int) (*Log, uint64) {
	t.Helper()
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	var seqs []uint64
	for range 10 {
		seqs = append(seqs, appendPage(t, w, 5, 500))
	}
	m, err := w.Log().message(testContext(t), seqs[page])
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, m.Data)
	l, err := embeddedIn(t, dir, nil).Log(testContext(t), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	return l, seqs[page]
}

// A byte of an entry flips on disk. The server skips the entry without a word; nobody may take what is before it for the whole
// log. Resuming accepts it: positions go back to before it, and the source is read again.
func TestFlippedByteHaltsTheLogUntilItIsResumed(t *testing.T) {
	for name, page := range map[string]int{"in the middle": 4, "in the newest entry": 9} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			l, spoilt := flipped(t, page)
			damage := (*DamageError)(nil)
			if _, err := l.Fold(ctx); !errors.As(err, &damage) || damage.From != spoilt || damage.To != spoilt {
				t.Fatalf("fold: %v, want damage at %d", err, spoilt)
			}
			if what := damage.Error(); !strings.Contains(what, "resume") || damage.Since.IsZero() {
				t.Errorf("the error does not say the way on: %s", what)
			}
			if _, err := l.Claim(ctx, ClaimOptions{Owner: "b"}); !errors.Is(err, ErrDamaged) {
				t.Fatalf("claim: %v, want damaged", err)
			}
			pause := true
			if _, err := l.Control(ctx, &checkpoint.Control{Pause: &pause}); !errors.Is(err, ErrDamaged) {
				t.Fatalf("pause: %v, want damaged", err)
			}
			if _, err := l.Control(ctx, &checkpoint.Control{Resume: true}); err != nil {
				t.Fatal(err)
			}
			w := claim(t, l, "b")
			if got, want := w.State().Shards["shard-1"].Pos.After, sequence(5*page); got != want {
				t.Fatalf("goes on from %s, want %s", got, want)
			}
			appendPage(t, w, 70, 10)
			if d := cmp.Diff(sequences(1, 5*page+70), readSeqs(t, l, w.State().Seq)); d != "" {
				t.Fatal(d)
			}
			sameState(t, fold(t, l), w.State())
		})
	}
}

// The damage lies before the last snapshot: the state is whole, only a sink that has not applied the entry stops there, until it
// is told to go on behind it.
func TestReaderStopsAtAFlippedByte(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	before := *w.State()
	spoilt := appendPage(t, w, 5, 500)
	appendPage(t, w, 5, 500)
	m, err := w.Log().message(ctx, spoilt)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.snapshot(ctx, true); err != nil {
		t.Fatal(err)
	}
	want := *w.State()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, m.Data)
	l, err := embeddedIn(t, dir, nil).Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, fold(t, l), &want)
	r, err := l.Read(ctx, before.Seq+1, before.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	damage := (*DamageError)(nil)
	if seq, _, err := r.Next(ctx); !errors.As(err, &damage) || damage.From != spoilt {
		t.Fatalf("read entry %d: %v, want damage at %d", seq, err, spoilt)
	}
	r.Skip(ctx, damage)
	if seq, e, err := r.Next(ctx); err != nil || seq != spoilt+1 || e.Kind != checkpoint.KindFrame {
		t.Fatalf("read entry %d behind the damage: %v, want %d", seq, err, spoilt+1)
	}
}

// A server that lost its index reads every block again, and cuts off what follows an entry that it cannot read. The log is
// shorter then, and nothing in it shows that: the owner says so.
func TestCutOffEndIsReported(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	appendPage(t, w, 5, 500)
	spoilt := appendPage(t, w, 5, 500)
	appendPage(t, w, 5, 500)
	m, err := w.Log().message(ctx, spoilt)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, m.Data)
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err != nil || len(indexes) == 0 {
		t.Fatalf("%d indexes: %v", len(indexes), err)
	}
	for _, index := range indexes {
		if err := os.Remove(index); err != nil {
			t.Fatal(err)
		}
	}
	core, lines := observer.New(zap.ErrorLevel)
	q, err = Open(ctx, Options{Pipeline: "shop", Dir: dir, MaxBytes: 256 << 20}, zap.New(core), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if w = claim(t, l, "b"); w.State().Changes != 5 {
		t.Fatalf("%d changes are left, want 5", w.State().Changes)
	}
	if n := lines.FilterMessageSnippet("cut off the end of the log").Len(); n != 1 {
		t.Fatalf("reported %d times", n)
	}
}
