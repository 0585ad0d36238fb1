package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
)

// saveEvery is the time between saves, on the machine's clock.
const saveEvery = 10 * time.Second

// saves blocks writing requests while the sandbox is saved, and counts them.
type saves struct {
	mu       sync.RWMutex
	requests atomic.Uint64
	writing  sync.Mutex // one save at a time
	saved    uint64     // requests at the last save
	writes   uint64     // Bigtable's writes at the last save
	count    int        // saves so far
}

// reads are the operations that change nothing. They are not blocked and do not block: a client
// that does not take its reply cannot delay a save.
var reads = map[string]bool{
	"GetItem": true, "BatchGetItem": true, "TransactGetItems": true, "Query": true, "Scan": true,
	"DescribeTable": true, "ListTables": true, "DescribeTimeToLive": true, "DescribeContinuousBackups": true,
	"DescribeExport": true, "ListExports": true,
	"ListStreams": true, "DescribeStream": true, "GetShardIterator": true, "GetRecords": true,
}

// gate is the innermost middleware of DynamoDB: it makes writing requests wait for a save.
func (v *saves) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads[dynamo.OperationOf(r)] {
			next.ServeHTTP(w, r)
			return
		}
		v.mu.RLock()
		defer v.mu.RUnlock()
		v.requests.Add(1)
		next.ServeHTTP(w, r)
	})
}

// natsDir returns the directory of NATS, "" for a temporary one.
func (s *Sandbox) natsDir() string {
	if s.o.Dir == "" {
		return ""
	}
	return filepath.Join(s.o.Dir, "nats")
}

// Save writes everything except NATS, which has its own directory, to a new directory within
// Options.Dir, which becomes the current one when it is complete. DynamoDB's tables and streams are
// saved as of one moment; callers that use DynamoDB without HTTP must not write meanwhile. It does
// nothing when there was no write since the last save.
func (s *Sandbox) Save(ctx context.Context) error {
	v := &s.saves
	v.writing.Lock()
	defer v.writing.Unlock()
	requests, writes := v.requests.Load(), s.bigtableWrites()
	if v.count > 0 && requests == v.saved && writes == v.writes {
		return nil
	}
	name := fmt.Sprintf("save-%d", time.Now().UnixNano())
	dir := filepath.Join(s.o.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save sandbox: %w", err)
	}
	if err := s.write(ctx, dir); err != nil {
		return fmt.Errorf("save sandbox: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	if err := s.makeCurrent(name); err != nil {
		return fmt.Errorf("save sandbox: %w", err)
	}
	v.saved, v.writes = requests, writes
	v.count++
	return nil
}

// bigtableWrites returns the number of Bigtable's writes, 0 without Bigtable.
func (s *Sandbox) bigtableWrites() uint64 {
	if s.Bigtable == nil {
		return 0
	}
	return s.Bigtable.Writes()
}

// write saves every part to a directory.
func (s *Sandbox) write(ctx context.Context, dir string) error {
	v := &s.saves
	v.mu.Lock()
	err := errors.Join(
		writeFile(dir, "tables", s.DynamoDB.Save),
		writeFile(dir, "exports", s.DynamoDB.SaveExports),
		writeFile(dir, "streams", s.Stream.Save))
	if s.Ledger != nil {
		err = errors.Join(err, writeFile(dir, "ledger", s.Ledger.Save))
	}
	v.mu.Unlock()
	if s.Bigtable != nil {
		err = errors.Join(err, writeFile(dir, "bigtable", func(w io.Writer) error { return s.Bigtable.Save(ctx, w) }))
	}
	return err
}

// writeFile writes one part's file.
func writeFile(dir, name string, save func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(save(out), out.Flush(), f.Close())
}

// makeCurrent points the directory's "current" file at a save and removes the others.
func (s *Sandbox) makeCurrent(name string) error {
	part := filepath.Join(s.o.Dir, "current.part")
	if err := os.WriteFile(part, []byte(name), 0o644); err != nil {
		return err
	}
	if err := os.Rename(part, filepath.Join(s.o.Dir, "current")); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(s.o.Dir, "save-*"))
	for _, dir := range old {
		if filepath.Base(dir) != name {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// restore reads the current save, if there is one.
func (s *Sandbox) restore(ctx context.Context) error {
	if s.o.Dir == "" {
		return nil
	}
	name, err := os.ReadFile(filepath.Join(s.o.Dir, "current"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore sandbox: %w", err)
	}
	dir := filepath.Join(s.o.Dir, strings.TrimSpace(string(name)))
	err = readFile(dir, "streams", s.Stream.Restore)
	if err == nil {
		err = readFile(dir, "tables", s.DynamoDB.Restore)
	}
	if err == nil {
		err = readFile(dir, "exports", s.DynamoDB.RestoreExports)
	}
	if err == nil && s.Ledger != nil {
		err = readFile(dir, "ledger", s.Ledger.Restore)
	}
	if err == nil && s.Bigtable != nil {
		err = readFile(dir, "bigtable", func(r io.Reader) error { return s.Bigtable.Restore(ctx, r) })
	}
	if err != nil {
		return fmt.Errorf("restore sandbox from %s: %w", dir, err)
	}
	return nil
}

// readFile restores one part from its file. A missing file is not an error: the saving sandbox did
// not have that part.
func readFile(dir, name string, restore func(io.Reader) error) error {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(restore(bufio.NewReaderSize(f, 1<<20)), f.Close())
}
