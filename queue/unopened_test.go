package queue

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestDamagedFolderBesideTheLogIsNotReplaced: dead letters, requests or events whose folder the
// server cannot open are neither there nor gone. Who asks for them is told what to do, nothing is
// made in their place, and the log and the other two are open.
func TestDamagedFolderBesideTheLogIsNotReplaced(t *testing.T) {
	beside := map[string]struct {
		name     func(log string) string
		open     func(context.Context, *Log) error
		existing func(context.Context, *Log) error
		hint     string
	}{
		"letters": {
			lettersStream,
			func(ctx context.Context, l *Log) error { _, err := l.DeadLetters(ctx); return err },
			func(ctx context.Context, l *Log) error { _, err := l.ExistingDeadLetters(ctx); return err },
			hintLetters,
		},
		"requests": {
			requestsStream,
			func(ctx context.Context, l *Log) error { _, err := l.Requests(ctx); return err },
			func(ctx context.Context, l *Log) error { _, err := l.ExistingRequests(ctx); return err },
			hintRequests,
		},
		"archive": {
			archiveStream,
			func(ctx context.Context, l *Log) error { _, err := l.Archive(ctx); return err },
			func(ctx context.Context, l *Log) error { _, err := l.ExistingArchive(ctx); return err },
			hintArchive,
		},
	}
	for damaged, x := range beside {
		t.Run(damaged, func(t *testing.T) {
			dir, ctx := t.TempDir(), testContext(t)
			q := embeddedIn(t, dir, nil)
			l := createLog(t, q)
			for _, y := range beside {
				if err := y.open(ctx, l); err != nil {
					t.Fatal(err)
				}
				store, err := q.conn.JS.Stream(ctx, y.name(l.name))
				if err != nil {
					t.Fatal(err)
				}
				subject := strings.NewReplacer("*", "x", ">", "x").Replace(store.CachedInfo().Config.Subjects[0])
				if _, err := q.conn.JS.Publish(ctx, subject, []byte("kept")); err != nil {
					t.Fatal(err)
				}
			}
			name := x.name(l.name)
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", name))
			if err != nil || len(folders) != 1 {
				t.Fatal(folders, err)
			}
			if err := os.Remove(filepath.Join(folders[0], "meta.inf")); err != nil {
				t.Fatal(err)
			}

			q = embeddedIn(t, dir, nil)
			if l, err = q.Log(ctx, "Orders"); err != nil {
				t.Fatal(err)
			}
			for what, y := range beside {
				for _, open := range []func(context.Context, *Log) error{y.open, y.existing} {
					err := open(ctx, l)
					if what != damaged {
						if err != nil {
							t.Errorf("%s: %v", what, err)
						}
						continue
					}
					if !errors.Is(err, ErrUnopened) || !strings.Contains(err.Error(), y.hint) {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
			if _, err := q.conn.JS.Stream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Errorf("a stream was made in its place: %v", err)
			}
			if blocks, err := os.ReadDir(filepath.Join(folders[0], "msgs")); err != nil || len(blocks) == 0 {
				t.Errorf("what was in it is gone: %v %v", blocks, err)
			}
		})
	}
}
