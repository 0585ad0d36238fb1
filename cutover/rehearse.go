package cutover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Rehearsal is what a cutover would meet now: what would refuse it, and how long the writers would
// have to stand still. It proves nothing about Bigtable, and is no certificate: certificate.Check
// refuses it. It cannot show that the writers can be stopped.
type Rehearsal struct {
	Schema   int       `json:"schema"`
	Pipeline string    `json:"pipeline"`
	Target   string    `json:"target"`
	Tables   []string  `json:"tables"`
	At       time.Time `json:"at"`
	// Refusals are why a cutover would be refused; empty: nothing refuses. Behind a refusal of the
	// first check no further step is rehearsed.
	Refusals []string `json:"refusals"`
	Steps    []Step   `json:"steps"`
	// WriteStop is how long the writers would stand still, in seconds, from their stop to the
	// certificate; 0 where not every step was rehearsed.
	WriteStop float64 `json:"write_stop_s"`
	Quiet     Lull    `json:"quiet"`
	How       string  `json:"compared,omitempty"` // certificate.HowFull or HowChanged
	Items     int64   `json:"items"`              // compared
	// Behind are the changes that were read while it was rehearsed: behind a fence each of them
	// refuses the certificate.
	Behind int64 `json:"changes_meanwhile"`
}

// Step is one step of a rehearsal.
type Step struct {
	Name    string  `json:"name"` // one of the words below
	Seconds float64 `json:"seconds"`
}

// The steps, in their order.
const (
	StepCheck   = "check"   // is the cutover refused before it begins?
	StepQuiet   = "quiet"   // --quiet, and until that much was read; the cutover waits for it, the rehearsal does not
	StepDrain   = "drain"   // until what was written is read and applied
	StepCompare = "compare" // both sides
	StepBehind  = "behind"  // until what was written meanwhile is read
	StepHeart   = "heartbeats"
)

// Lull is the longest time without a change of an application.
type Lull struct {
	Longest float64   `json:"longest_s"`
	Since   time.Time `json:"since"`
	Window  float64   `json:"window_s"` // searched: an hour, or the part of it that the logs hold
	Wanted  float64   `json:"wanted_s"` // --quiet
}

// lullWindow is the time in which the longest lull is looked for.
const lullWindow = time.Hour

// Rehearse makes the steps of a cutover without a fence, and leaves nothing behind: no entry in a
// log, no row, no request, no file. Errors are those of the servers; what would refuse the cutover
// is in the result.
func (c *Cutover) Rehearse(ctx context.Context) (*Rehearsal, error) {
	now, err := c.pair.Ask(ctx)
	if err != nil {
		return nil, err
	}
	r := &Rehearsal{
		Schema: 1, Pipeline: c.cfg.Pipeline, Target: c.pair.Target, Tables: c.Tables, At: utc(now), Refusals: []string{},
		Quiet: Lull{Wanted: c.Quiet.Seconds()},
	}
	end, err := c.makeFolder()
	if err != nil {
		return nil, failure.With(failure.Unready, "choose another `scratch`", err)
	}
	defer end()
	if err := c.rehearse(ctx, r); err != nil {
		return nil, audit.NoRoom(c.cfg.Scratch, err)
	}
	return r, nil
}

// folderPrefix begins the names of the folders of rehearsals.
const folderPrefix = "rehearsal-"

// makeFolder makes the folder of the rehearsal, and removes those of rehearsals that were killed.
// end removes it; where that fails, files of a comparison stay, of mode 0600.
func (c *Cutover) makeFolder() (end func(), err error) {
	base := c.cfg.Scratch
	_, missing := os.Stat(base)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	removeLeft(base)
	if c.folder, err = os.MkdirTemp(base, folderPrefix); err != nil {
		return nil, err
	}
	lock, err := audit.LockScratch(c.folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.folder))
	}
	return func() {
		_ = lock.Close() // which unlocks it
		_ = os.RemoveAll(c.folder)
		if missing != nil {
			_ = os.Remove(base) // which fails if another command uses it now
		}
	}, nil
}

// removeLeft removes the folders of rehearsals that no process works in any more. One that was just
// made may not have its lock yet.
func removeLeft(base string) {
	all, err := os.ReadDir(base)
	if err != nil {
		return // what is left stays
	}
	for _, entry := range all {
		dir := filepath.Join(base, entry.Name())
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), folderPrefix) ||
			time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if lock, err := audit.LockScratch(dir); err == nil {
			_ = lock.Close()
			_ = os.RemoveAll(dir)
		}
	}
}

// rehearse fills in the result.
func (c *Cutover) rehearse(ctx context.Context, r *Rehearsal) error {
	if err := r.step(StepCheck, func() error { return c.mayBegin(ctx) }); err != nil || len(r.Refusals) > 0 {
		return err
	}
	before, err := c.logs(ctx)
	if err != nil {
		return err
	}
	if err := c.lull(ctx, before, r); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{StepQuiet, func() error { return c.readAll(ctx) }},
		{StepDrain, func() error { return c.drained(ctx) }},
		{StepCompare, func() error { return c.compare(ctx, r) }},
		{StepBehind, func() error { return c.drained(ctx) }},
		{StepHeart, func() error { _, err := c.pair.Proven(ctx); return err }},
	} {
		if err := r.step(s.name, s.do); err != nil {
			// A table that was paused, or halted, since the first check ends a step with an error.
			if again := r.refuse(c.mayBegin(ctx)); again != nil || len(r.Refusals) == 0 {
				return err
			}
			return nil
		}
	}
	// The comparison may have taken hours.
	if err := r.refuse(c.mayBegin(ctx)); err != nil {
		return err
	}
	if r.Behind, err = c.meanwhile(ctx, before); err != nil {
		return err
	}
	r.Steps[1].Seconds += c.Quiet.Seconds()
	for _, s := range r.Steps[1:] {
		r.WriteStop += s.Seconds
	}
	return nil
}

// step measures a step. A refusal is noted, and no error.
func (r *Rehearsal) step(name string, do func() error) error {
	began := time.Now()
	err := do()
	r.Steps = append(r.Steps, Step{Name: name, Seconds: time.Since(began).Seconds()})
	return r.refuse(err)
}

// refuse notes the reasons of a refusal, each once, and returns other errors.
func (r *Rehearsal) refuse(err error) error {
	refused := (*Refused)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	for _, reason := range refused.Reasons {
		if !slices.Contains(r.Refusals, reason) {
			r.Refusals = append(r.Refusals, reason)
		}
	}
	return nil
}

// mayBegin returns what would refuse a cutover before it raises a fence, all of it.
func (c *Cutover) mayBegin(ctx context.Context) error {
	if err := c.findFence(ctx); err != nil {
		return err
	}
	if c.id != "" {
		return refuse("the fence of cutover %s stands: a rehearsal is for before", c.id)
	}
	reasons, err := c.cannot(ctx)
	if err != nil {
		return err
	}
	refused := (*Refused)(nil)
	switch err := c.check(ctx); {
	case errors.As(err, &refused):
		reasons = append(reasons, refused.Reasons...)
	case err != nil:
		return err
	}
	if len(reasons) > 0 {
		return &Refused{Reasons: reasons}
	}
	return nil
}

// readAll waits until the logs hold everything that was written before it began.
func (c *Cutover) readAll(ctx context.Context) error {
	now, err := c.pair.Ask(ctx)
	if err != nil {
		return err
	}
	return c.poll(ctx, func(logs []*control.Log) bool { return readThrough(logs, now+1000) }) // Date is cut to seconds
}

// drained waits until everything that was written before it began is in Bigtable.
func (c *Cutover) drained(ctx context.Context) error {
	now, err := c.pair.Ask(ctx)
	if err != nil {
		return err
	}
	return c.pair.Prove(ctx, now+1000)
}

// compare compares both sides as the cutover would, while the writers write: what may differ is
// read again until it is certain.
func (c *Cutover) compare(ctx context.Context, r *Rehearsal) error {
	if err := c.copySaved(); err != nil {
		return err
	}
	v, err := c.verify(ctx)
	if err != nil {
		return err
	}
	r.How, r.Items = v.How, v.Items
	if v.Changed != nil {
		r.Items = v.Changed.Items
	}
	return nil
}

// copySaved copies the kept full comparison into the folder of the rehearsal: reading the items
// that have changed since adds to its files.
func (c *Cutover) copySaved() error {
	from := audit.SavedDir(c.cfg.Scratch, c.cfg.Pipeline, c.pair.Target)
	if _, err := audit.LoadSaved(from); err != nil {
		return nil // none is kept, or it is of no use: all items are compared
	}
	lock, err := audit.LockScratch(filepath.Join(from, "all"))
	if err != nil {
		return nil // a verify is at work: without the copy all items are compared
	}
	defer lock.Close() // which unlocks it
	saved, err := audit.LoadSaved(from)
	if err != nil {
		return nil // none is kept, or it is of no use: all items are compared
	}
	return saved.CopyTo(from, audit.SavedDir(c.folder, c.cfg.Pipeline, c.pair.Target))
}

// meanwhile returns how many changes the logs got since they were read before. Changes by TTL and
// heartbeats do not count.
func (c *Cutover) meanwhile(ctx context.Context, before []*control.Log) (n int64, err error) {
	logs, err := c.logs(ctx)
	if err != nil {
		return 0, err
	}
	for i, l := range logs {
		after := checkpointMark(before[i])
		if _, err := changesAfter(ctx, l, after, func(change.Millis) { n++ }); err != nil {
			return n, fmt.Errorf("look at what was written to %s meanwhile: %w", l.Table, err)
		}
	}
	return n, nil
}

// Publish publishes the result to the replicators of the pipeline, for status page and metrics.
// Nothing stores it.
func (c *Cutover) Publish(ctx context.Context, r *Rehearsal) error {
	x := status.Rehearsed{
		Target: r.Target, At: r.At, Refusals: r.Refusals, WriteStop: r.WriteStop, Steps: map[string]float64{},
	}
	for _, s := range r.Steps {
		x.Steps[s.Name] = s.Seconds
	}
	if r.WriteStop > 0 {
		x.Steps["write_stop"] = r.WriteStop
	}
	data, err := json.Marshal(x.Cut())
	if err != nil {
		return err
	}
	q, err := c.pair.Queue(ctx)
	if err != nil {
		return err
	}
	return q.PublishRehearsal(r.Pipeline, data)
}

// Sentence returns the result in words.
func (r *Rehearsal) Sentence() string {
	if len(r.Refusals) > 0 {
		return "A cutover of " + strings.Join(r.Tables, ", ") + " would be refused: " + strings.Join(r.Refusals, "; ") + "."
	}
	text := fmt.Sprintf("Nothing refuses a cutover of %s. The writers would stand still for about %.0f s.",
		strings.Join(r.Tables, ", "), r.WriteStop)
	if r.Behind > 0 {
		text += fmt.Sprintf(" %s meanwhile: stop them first, as the cutover waits for %.0f s without a change.",
			english.Plural(int(r.Behind), "change was written", "changes were written"), r.Quiet.Wanted)
	}
	return text
}
