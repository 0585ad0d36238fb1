package continuous

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
)

// RunnerOptions of a Runner.
type RunnerOptions struct {
	Verifier Options       // but for Changed and From
	Dir      string        // this table's own, for the list of differences
	Store    Store         // for the position, so that another owner goes on
	Table    string        // DynamoDB's id of the table
	Retry    time.Duration // after a failure; at most failure.LongestBackoff
	Logger   *zap.Logger
}

// Store keeps the position of the comparison: the state table.
type Store interface {
	Load(ctx context.Context) ([]byte, error) // nil: nothing is stored
	Save(ctx context.Context, position []byte) error
}

// Runner is the continuous comparison of a table in one life.
type Runner struct {
	o        RunnerOptions
	verifier *Verifier
	saved    []byte                 // the position as it is stored
	failed   atomic.Pointer[string] // why the last call failed; nil: it did not

	mu    sync.Mutex // covers the files and what follows
	found int64      // differences at the last change
}

const (
	differencesFile = "differences.jsonl"
	saveEvery       = time.Minute
	saveTime        = 5 * time.Second // for the last one of a life
	maxSaved        = 1000            // differences in a position
	positionFormat  = 1
)

// position is what is stored: a comparison of another table or by another mapping begins anew.
type position struct {
	id
	Snapshot
}

type id struct {
	Format  int    `json:"format"` // Rule 11: with an unknown one the comparison begins anew
	Table   string `json:"table"`
	Mapping string `json:"mapping"`
}

// NewRunner returns the comparison of a life. It continues where the comparison of the life before
// stopped, or, without one, at the stored position.
func NewRunner(ctx context.Context, o RunnerOptions, before *Runner) (*Runner, error) {
	r := &Runner{o: o}
	o.Verifier.Changed = r.changed
	switch {
	case before == nil:
		var err error
		if o.Verifier.From, err = r.load(ctx); err != nil {
			return nil, err
		}
	case before.identity() == r.identity():
		o.Verifier.From = before.verifier.Snapshot()
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for differences: %w", err)
	}
	r.verifier = New(o.Verifier)
	return r, nil
}

func (r *Runner) identity() id {
	hash := r.o.Verifier.Tables[0].Program.Hash()
	return id{Format: positionFormat, Table: r.o.Table, Mapping: hex.EncodeToString(hash[:])}
}

// Run compares until ctx ends; nil then. What fails is tried again: the stream does not need it.
func (r *Runner) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.compare(ctx) })
	g.Go(func() error { return r.saveOften(ctx) })
	err := g.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	r.save(last)
	return err
}

func (r *Runner) compare(ctx context.Context) error {
	for tries := 1; ctx.Err() == nil; tries++ {
		began := time.Now()
		err := r.verifier.Run(ctx)
		if time.Since(began) > failure.LongestBackoff {
			tries = 1
		}
		if ctx.Err() == nil {
			r.awaitNext(ctx, err, tries)
		}
	}
	return nil
}

// awaitNext pauses after a failure.
func (r *Runner) awaitNext(ctx context.Context, err error, tries int) {
	why := err.Error()
	r.failed.Store(&why)
	r.o.Logger.Warn("the continuous comparison failed: will be tried again", zap.Error(err))
	_ = failure.Pause(ctx, min(failure.Backoff(tries), r.o.Retry)) // fails when ctx ends
	r.failed.Store(nil)
}

// Status returns how far the comparison is, without keys.
func (r *Runner) Status() *Status {
	s := r.verifier.Status()
	if why := r.failed.Load(); why != nil {
		s.Waits = *why
	}
	if s.Different+s.Foreign+s.Unproven+s.Refused > 0 {
		s.File = filepath.Join(r.o.Dir, differencesFile)
	}
	return s
}

// changed rewrites the list of differences, and logs their number.
func (r *Runner) changed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list bytes.Buffer
	for _, d := range r.verifier.Differences() {
		if err := d.Write(&list); err != nil {
			return err
		}
	}
	if err := replace(filepath.Join(r.o.Dir, differencesFile), list.Bytes()); err != nil {
		return fmt.Errorf("list differences: %w", err)
	}
	s := r.verifier.Status()
	if n := s.Different + s.Foreign; n != r.found {
		r.o.Logger.Warn("the number of known differences from the table has changed", zap.Int64("different", s.Different),
			zap.Int64("foreign", s.Foreign), zap.String("file", filepath.Join(r.o.Dir, differencesFile)))
		r.found = n
	}
	return nil
}

// saveOften stores the position until ctx ends.
func (r *Runner) saveOften(ctx context.Context) error {
	for failure.Pause(ctx, saveEvery) == nil {
		r.save(ctx)
	}
	return nil
}

// save stores the position if it has changed. A failure costs a part of a pass, after a restart.
func (r *Runner) save(ctx context.Context) {
	found := *r.verifier.Snapshot()
	if r.o.Verifier.Tables[0].Program.SealsKeys() && len(found.Open) > 0 {
		// Bigtable must not hold keys in clear: the next owner finds them again, by beginning anew.
		found.Open, found.Items, found.Rows = nil, found.Items.Anew(), found.Rows.Anew()
	}
	found.Open, found.Cells = found.Open[:min(len(found.Open), maxSaved)], found.Cells[:min(len(found.Cells), maxSaved)]
	text, err := json.Marshal(position{r.identity(), found})
	if err == nil && bytes.Equal(text, r.saved) {
		return
	}
	if err == nil {
		err = r.o.Store.Save(ctx, text)
	}
	if err != nil {
		r.o.Logger.Warn("the position of the continuous comparison is not stored", zap.Error(err))
		return
	}
	r.saved = text
}

// load returns the stored position; nil where there is none for this table and mapping.
func (r *Runner) load(ctx context.Context) (*Snapshot, error) {
	text, err := r.o.Store.Load(ctx)
	if err != nil || text == nil {
		return nil, err
	}
	var p position
	if json.Unmarshal(text, &p) == nil && p.id == r.identity() {
		return &p.Snapshot, nil
	}
	r.o.Logger.Info("the continuous comparison begins anew: its position is of another table or mapping")
	return nil, nil
}

// replace replaces a file that holds keys, whole or not at all.
func replace(path string, content []byte) error {
	next := path + ".new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
