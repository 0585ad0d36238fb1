package queue

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// unopenable puts something in a place that nobody can open, as if the device was gone. It returns
// what takes it away again.
func unopenable(t *testing.T, path string) (back func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Close())
	_, err = os.Stat(path)
	there := err == nil
	if there {
		must(os.Rename(path, filepath.Join(dir, "kept")))
	}
	must(os.Rename(filepath.Join(dir, "s"), path))
	if _, err := os.Open(path); !errors.Is(err, syscall.ENXIO) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		must(os.Remove(path))
		if there {
			must(os.Rename(filepath.Join(dir, "kept"), path))
		}
	}
}

// blocksOf returns the blocks of a store's only log.
func blocksOf(t *testing.T, dir string) []string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	return blocks
}

// ofTheVolume reports whether an error names an input/output error, and no way out that gives
// something up.
func ofTheVolume(err error) bool {
	return errors.Is(err, ErrVolume) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnopened) &&
		strings.Contains(err.Error(), "input/output error") && !strings.Contains(err.Error(), "`replicator")
}

// Rule 13: the server says of entries that it cannot read that there are none. An input/output
// error of the volume is no damage, and is over with it.
func TestInputOutputErrorIsNoDamage(t *testing.T) {
	for name, early := range map[string]bool{"when the store is opened": true, "while it is open": false} {
		t.Run(name, func(t *testing.T) {
			dir, ctx := t.TempDir(), testContext(t)
			q := embeddedIn(t, dir, nil)
			w := owned(t, q)
			for range 10 {
				appendPage(t, w, 5, 500)
			}
			want := *w.State()
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			block := blocksOf(t, dir)[0]
			var back func()
			if early {
				back = unopenable(t, block)
			}
			q = embeddedIn(t, dir, nil)
			l, err := q.Log(ctx, "Orders")
			if early {
				if !ofTheVolume(err) {
					t.Fatalf("open: %v", err)
				}
				back()
				q.embedded.Check(ctx)
				err = conn.Retry(ctx, func() (err error) { // the client connects again
					l, err = q.Log(ctx, "Orders")
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			} else {
				back = unopenable(t, block)
				_, foldErr := l.Fold(ctx)
				_, claimErr := l.Claim(ctx, ClaimOptions{Owner: "b", Alone: true})
				_, seenErr := l.SeenAt(ctx, want.Seq)
				_, controlErr := l.AppendControl(ctx, &checkpoint.Control{Resume: true})
				for i, err := range []error{foldErr, claimErr, seenErr, controlErr} {
					if !ofTheVolume(err) {
						t.Errorf("%d: %v", i, err)
					}
				}
				back()
			}
			sameState(t, fold(t, l), &want)
		})
	}
}

// A write fails: the table is told why, and goes on once the volume can be written.
func TestRefusedWriteIsAnErrorOfTheVolume(t *testing.T) {
	dir, ctx := t.TempDir(), testContext(t)
	q := embeddedIn(t, dir, func(o *Options) { o.AckTimeout /= 10 })
	w := owned(t, q)
	blocks := blocksOf(t, dir)
	var last int
	if _, err := fmt.Sscanf(filepath.Base(blocks[len(blocks)-1]), "%d.blk", &last); err != nil {
		t.Fatal(err)
	}
	back := unopenable(t, filepath.Join(filepath.Dir(blocks[0]), fmt.Sprintf("%d.blk", last+1)))
	var err error
	for range 100 {
		f := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 5, 100_000))[0]
		if _, err = w.Append(ctx, f.Body, f.Data); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append: %v", err)
	}
	stored := *w.State()
	if err := w.Recover(ctx); !ofTheVolume(err) {
		t.Errorf("recover: %v", err)
	}
	if _, err := w.Log().Claim(ctx, ClaimOptions{Owner: "b", Alone: true}); !ofTheVolume(err) {
		t.Errorf("claim: %v", err)
	}
	back()
	q.embedded.Check(ctx)
	w, err = w.Log().Claim(ctx, ClaimOptions{Owner: "b", Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.State().Shards["shard-1"].Pos; got != stored.Shards["shard-1"].Pos {
		t.Errorf("goes on from %v, want %v", got, stored.Shards["shard-1"].Pos)
	}
	appendPage(t, w, 5, 500)
	sameState(t, fold(t, w.Log()), w.State())
}
