package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

const (
	followEvery   = 5 * time.Second
	maxSavedCells = 1_000_000 // listed; more are counted
)

// RecordOptions of a recorder.
type RecordOptions struct {
	Dir, Pipeline string
	Strong        bool // items are read strongly
	Along         bool // the logs are read along
	ByWorkers     bool // what is left of an interrupted comparison is a job, and no parts

	// DropParts removes what an interrupted comparison has read, so that it will not be used again;
	// nil where there is nothing.
	DropParts func() error
}

// Recorder records a full comparison of all tables of a target, to be kept when it has ended.
type Recorder struct {
	follower
	dir    string
	result Saved
	cells  *os.File
}

// Record begins to record: it takes how far the logs are now, so it comes before the first item is
// read. Where the logs are read along, it does not matter when they are trimmed.
//
// Where an interrupted comparison has left parts, Record goes on with that one if it can. Else it
// drops the parts, before it notes that another one has begun: a process that is killed between the
// two must not leave parts that seem to be of the new one, because what changed between the two
// would be looked at by neither.
func Record(ctx context.Context, s *pair.Pair, o RecordOptions) (r *Recorder, resumed bool, err error) {
	tables, marks, err := tablesNow(ctx, s, o.Pipeline)
	if err != nil {
		return nil, false, err
	}
	r = &Recorder{dir: o.Dir}
	if resumed = o.DropParts != nil && r.resume(s, o, tables); !resumed {
		if err := r.begin(s, o, tables); err != nil {
			return nil, false, err
		}
	}
	folder := filepath.Join(o.Dir, r.result.Folder)
	k, err := openKeys(folder, marks)
	if err == nil {
		err = k.save() // the marks
	}
	if err != nil {
		return nil, false, err
	}
	r.follower = follower{pair: s, keys: k, result: &r.result}
	r.cells, err = os.OpenFile(filepath.Join(folder, cellsFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("keep cells: %w", err)
	}
	return r, resumed, nil
}

// begin begins a new comparison.
func (r *Recorder) begin(s *pair.Pair, o RecordOptions, tables []SavedTable) (err error) {
	if o.DropParts != nil {
		if err := o.DropParts(); err != nil {
			return fmt.Errorf("drop what an earlier comparison has read: %w", err)
		}
	}
	r.result = Saved{
		Format: format, Pipeline: o.Pipeline, Target: s.Target, Strong: o.Strong, Followed: o.Along, ByWorkers: o.ByWorkers,
		Began: s.Now().Time().UTC(), Tables: tables,
	}
	for i, t := range s.Tables {
		r.result.Tables[i].Result.Source = t.Source
	}
	if r.result.Folder, err = newFolder(o.Dir); err != nil {
		return err
	}
	return r.result.write(filepath.Join(o.Dir, begunFile))
}

// resume goes on with the comparison that was interrupted, and reports whether it can.
func (r *Recorder) resume(s *pair.Pair, o RecordOptions, tables []SavedTable) bool {
	begun, err := load(filepath.Join(o.Dir, begunFile))
	if err != nil || begun.Strong != o.Strong || begun.Followed != o.Along || begun.differs(s, o.Pipeline, tables) != "" {
		return false
	}
	if begun.ByWorkers != o.ByWorkers {
		return false // it is not the one that has left the parts: they may be older
	}
	if s.Now().Time().Sub(begun.Began) > verify.MaxPartAge {
		return false
	}
	if last, err := load(filepath.Join(o.Dir, resultFile)); err == nil && last.Folder == begun.Folder {
		return false // it has ended
	}
	if _, err := os.Stat(filepath.Join(o.Dir, begun.Folder, keysFolder)); err != nil {
		return false // a later comparison has removed it
	}
	r.result = *begun
	return true
}

// tablesNow returns what the tables of a target are at this moment, and up to which entry of its
// log Bigtable has each.
func tablesNow(
	ctx context.Context, s *pair.Pair, pipeline string,
) (all []SavedTable, marks []checkpoint.Mark, err error) {
	logs, err := s.Running(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range logs {
		t := s.Tables[i]
		one := SavedTable{
			TableID: t.Info.ID, MappingHash: t.Identity(pipeline, s.Sink()).MappingHash,
			LogCreated: l.Log.Created().UTC(), Life: l.State.Life, Mark: l.State.Marks[checkpoint.SinkBigtable],
			Begun: l.State.Seq, OpenGaps: l.State.OpenGaps(),
		}
		if one.Requests, err = requestsOf(ctx, l); err != nil {
			return nil, nil, err
		}
		all, marks = append(all, one), append(marks, one.Mark)
	}
	return all, marks, nil
}

// requestsOf returns how far the requests for a table have come.
func requestsOf(ctx context.Context, l *control.Log) (SavedRequests, error) {
	s, err := l.Log.ExistingRequests(ctx)
	if s == nil || err != nil {
		return SavedRequests{}, err
	}
	created, last, err := s.Position(ctx)
	return SavedRequests{created.UTC(), last}, err
}

// Along compares, and reads the logs along where that was asked for.
func (r *Recorder) Along(ctx context.Context, compare func(context.Context) error) error {
	if !r.result.Followed {
		return compare(ctx)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var both errgroup.Group
	both.Go(func() error {
		defer stop()
		return compare(ctx)
	})
	both.Go(func() error {
		for failure.Pause(reading, followEvery) == nil {
			if err := r.follow(reading); err != nil && reading.Err() == nil {
				return err
			}
		}
		return nil
	})
	if err := both.Wait(); err != nil {
		return err
	}
	return r.follow(ctx)
}

// Item takes an item that was settled.
func (r *Recorder) Item(v *verify.Verdict) error {
	if slices.Contains([]verify.Status{verify.Equal, verify.EqualByLog, verify.Kept}, v.Status) {
		return nil
	}
	r.result.OpenItems++
	err := r.keys.add(partOpen, v.Table, []byte(v.Key), nil)
	for _, row := range v.Rows {
		err = errors.Join(err, r.keys.add(partOpen, v.Table, []byte(v.Key), row))
	}
	return err
}

// Cell takes a cell of the target without a known owner.
func (r *Recorder) Cell(o *verify.Open) error {
	if r.result.OpenCells++; r.result.OpenCells > maxSavedCells {
		return nil
	}
	if err := json.NewEncoder(r.cells).Encode(o); err != nil {
		return fmt.Errorf("keep cells: %w", err)
	}
	return nil
}

// Keep keeps the result. It returns why it will not serve, where that is known: what Along could
// not read.
func (r *Recorder) Keep(tables []report.Table) (broken string, err error) {
	for i := range tables {
		r.result.Tables[i].Result = tables[i]
	}
	r.result.Ended, r.result.Verdict = r.pair.Now().Time().UTC(), report.Worst(tables)
	if err := r.keys.save(); err != nil {
		return "", err
	}
	if err := r.result.save(r.dir); err != nil {
		return "", err
	}
	// Rule 15: the result is stored, and stands whatever becomes of the note that it was begun:
	// resume finds the result.
	_ = os.Remove(filepath.Join(r.dir, begunFile))
	return r.keys.Broken, nil
}

// Close closes the files. What is not kept by then is used by the next comparison, or removed by
// it.
func (r *Recorder) Close() error { return r.cells.Close() }
