package shadow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
)

// TooLarge is why a request has no pattern: its body is longer than an exchange holds.
const TooLarge pattern.Reason = "large"

// storePeriod is how often the counts are stored: an engine that is killed loses those since.
const storePeriod = time.Second

// Engine counts the patterns of exchanges, and may have their reads replayed.
type Engine struct {
	reader   *pattern.Reader
	counts   *pattern.Collector
	file     string
	replayer *replay.Replayer // nil: reads are counted only

	storing sync.Mutex // held while the file is written
}

// NewEngine returns an engine that stores its counts in a file, which it replaces as a whole.
func NewEngine(r *pattern.Reader, file string) *Engine {
	return &Engine{reader: r, counts: pattern.NewCollector(), file: file}
}

// Replay has the engine replay reads of these tables. What differs goes to mismatch, and what
// hinders it to warn.
func (e *Engine) Replay(
	tables []replay.Table, mismatch func(replay.Mismatch) error, warn func(format string, args ...any),
) {
	e.replayer = replay.New(replay.Options{
		Reader: e.reader, Counts: e.counts, Tables: tables, Mismatch: mismatch, Warn: warn,
	})
}

// SettleTime is how long an engine settles items behind the end of the pipe. An item that differs
// takes two proofs, and a proof waits for idle shards.
const SettleTime = 2 * time.Minute

// Run counts the exchanges that come from a pipe, until it ends, and settles what is open.
func (e *Engine) Run(ctx context.Context, pipe io.Reader) error {
	storing, end := context.WithCancel(ctx)
	replaying, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var stores, replays errgroup.Group
	stores.Go(func() error { return e.storeRegularly(storing) })
	if e.replayer != nil {
		replays.Go(func() error { return e.replayer.Run(replaying) })
	}
	err := e.count(pipe)
	if e.replayer != nil {
		e.replayer.Close()
		defer time.AfterFunc(SettleTime, giveUp).Stop()
	}
	err = errors.Join(err, replays.Wait())
	end()
	return errors.Join(err, stores.Wait(), e.store())
}

// storeRegularly stores the counts until ctx ends.
func (e *Engine) storeRegularly(ctx context.Context) error {
	for failure.Pause(ctx, storePeriod) == nil {
		if err := e.store(); err != nil {
			return err
		}
	}
	return nil
}

// count counts exchanges until the pipe ends.
func (e *Engine) count(pipe io.Reader) error {
	frames := exchange.NewReader(pipe)
	for {
		x, err := frames.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read exchanges: %w", err)
		}
		e.add(x)
	}
}

// add counts an exchange.
func (e *Engine) add(x *exchange.Exchange) {
	_, operation, _ := strings.Cut(x.Target, ".")
	answer := pattern.Answer{Bytes: x.Answer.Size, Took: x.Duration, Failed: x.Status != 200}
	body, err := x.Request.Text()
	if err != nil {
		e.counts.Add(pattern.Request{Skipped: TooLarge}, answer)
		return
	}
	request := e.reader.Of(operation, body)
	e.counts.Add(request, answer)
	if e.replayer != nil {
		e.replayer.Offer(request, x)
	}
}

// store stores the counts.
func (e *Engine) store() error {
	e.storing.Lock()
	defer e.storing.Unlock()
	data, err := json.Marshal(e.counts.Snapshot())
	if err == nil {
		err = os.WriteFile(e.file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(e.file+".new", e.file)
	}
	if err != nil {
		return fmt.Errorf("store counts: %w", err)
	}
	return nil
}

// RemoveCounts removes a directory with what engines have stored, but nothing else that it may
// have.
func RemoveCounts(dir string) error {
	for _, pattern := range []string{"*.json", "*.json.new"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		if err != nil {
			return fmt.Errorf("remove counts: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("remove counts: %w", err)
	}
	return nil
}

// CountsOf returns what the engines of a run have stored in a directory, together.
func CountsOf(dir string) (*pattern.Snapshot, error) {
	all := pattern.NewCollector().Snapshot()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read counts: %w", err)
		}
		one, err := pattern.Parse(data)
		if err != nil {
			return nil, err
		}
		all.Merge(one)
	}
	return all, nil
}
