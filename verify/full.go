package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// FullOptions of a full comparison. Zero values mean the defaults, where one is named.
type FullOptions struct {
	Dir      string // for sorted runs, this comparison's own; finished parts survive a restart
	Identity string // of the comparison: runs that were stored under another one are removed
	Memory   int    // bytes for all records that are being sorted; default 48 MiB
	Readers  int    // parts read at once; default 2

	Now  func() change.Millis // the service's clock
	Lead change.Millis        // how far above it versions may be: a guard beyond is a difference

	Progress func(Counts) // may be nil; called after each page and then for every 10,000 rows of the target
}

func (o FullOptions) withDefaults() FullOptions {
	if o.Memory == 0 {
		o.Memory = 48 << 20
	}
	if o.Readers == 0 {
		o.Readers = 2
	}
	if o.Progress == nil {
		o.Progress = func(Counts) {}
	}
	return o
}

// Full compares all items of the tables with all rows of their target, while both are written to. A
// difference that it finds is only a candidate; Settle decides about it. Memory is bounded whatever
// the size of the tables.
//
// The projection of all items is sorted on disk first. Each finished part of it stays there, so a
// restart continues with the parts in o.Dir. Remove or Close of the findings must be called.
func Full(ctx context.Context, o FullOptions, tables []Table, target Target) (*Findings, error) {
	f := &full{o: o.withDefaults(), tables: tables, target: target, families: guarded.FamiliesOf(tables)}
	found, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	if err := f.run(ctx, found); err != nil {
		_ = found.Close() // of files that are not complete
		return nil, f.noRoom(found.runs, err)
	}
	return found, nil
}

// full is one full comparison.
type full struct {
	o        FullOptions
	tables   []Table
	target   Target
	families *guarded.Families
	inRange  bool // the records come from elsewhere: CompareRange

	mu     sync.Mutex
	counts Counts // of pages read by this process, for the progress
}

func (f *full) open() (*Findings, error) {
	found := &Findings{tables: f.tables, target: f.target, dir: f.o.Dir}
	if err := os.MkdirAll(f.o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	var err error
	identity := f.o.Identity + guarded.PartsOf(f.tables)
	if found.runs, err = extsort.Open(filepath.Join(f.o.Dir, runsFolder), identity); err != nil {
		return nil, err
	}
	if err := found.runs.DropIf(f.isOld); err != nil {
		return nil, err
	}
	if f.inRange {
		return found, nil // the items of whole tables are sorted elsewhere
	}
	return found, f.checkRoom(found.runs)
}

// MaxPartAge is how old the items of a part may be for a later process to use them. DynamoDB keeps
// its stream for 24 hours, so a change that was lost before it was read was made earlier than that,
// and younger parts show it. In older ones, the item before the change equals the row without it.
const MaxPartAge = 24 * time.Hour

// isOld reports whether an earlier process has read a part too long ago.
func (f *full) isOld(p extsort.Part) bool {
	var n note
	err := decodeNote(p, &n)
	return err != nil || n.Began > 0 && f.o.Now()-n.Began > change.Millis(MaxPartAge.Milliseconds())
}

// maxTries is how often damaged runs are made again before the disk counts as bad.
const maxTries = 4

func (f *full) run(ctx context.Context, found *Findings) error {
	for try := 1; ; try++ {
		if err := f.project(ctx, found.runs); err != nil {
			return fmt.Errorf("project items: %w", err)
		}
		err := f.merge(ctx, found)
		var damaged *extsort.DamagedError
		switch {
		case !errors.As(err, &damaged):
			return err
		case try == maxTries:
			return fmt.Errorf("%w; runs were damaged %d times: check the disk of %s", err, try, f.o.Dir)
		}
		if err := found.runs.Drop(damaged.Part); err != nil {
			return err
		}
	}
}

// project reads the parts that are not finished.
func (f *full) project(ctx context.Context, store *extsort.Store) error {
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(f.o.Readers)
	first := 0
	for i := range f.tables {
		for part := range f.tables[i].Parts {
			number := first + part
			readers.Go(func() error { return f.projectPart(ctx, store, number, i, part) })
		}
		first += f.tables[i].Parts
	}
	return readers.Wait()
}

// note counts the pages that were read of a part; it is stored in the part's manifest.
type note struct {
	Items, Refused  int64
	Began, Answered change.Millis
}

func (n *note) add(c *Counts) {
	c.Items, c.Refused, c.Answered = c.Items+n.Items, c.Refused+n.Refused, max(c.Answered, n.Answered)
	if n.Began > 0 && (c.Began == 0 || n.Began < c.Began) {
		c.Began = n.Began
	}
}

// projectPart reads a part from the position in its manifest, and stores the sorted rows of its
// items.
func (f *full) projectPart(ctx context.Context, store *extsort.Store, number, table, part int) error {
	w, err := store.Writer(number, f.o.Memory/f.o.Readers)
	if err != nil {
		return err
	}
	r := &partReader{full: f, table: table, to: w, p: newProjection(f.families, f.tables)}
	if err := decodeNote(w.Part(), &r.note); err != nil {
		return err
	}
	f.progress(r.note)
	for after, done := w.Part().After, w.Part().Done; !done; {
		page, err := f.tables[table].Page(ctx, part, after)
		if err != nil {
			return err
		}
		if err := r.addPage(page.Items, page.Requested, page.Answered); err != nil {
			return err
		}
		after, done = page.After, page.Done
		page.Free()
		if done || w.Full() {
			if err := w.Save(after, &r.note, done); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *full) progress(n note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.add(&f.counts)
	f.o.Progress(f.counts)
}

// partReader turns the pages of a part into records.
type partReader struct {
	full  *full
	table int
	to    *extsort.Writer
	p     *Projection
	note  note
}

func (r *partReader) addPage(items [][]byte, requested, answered change.Millis) error {
	page := note{Items: int64(len(items)), Began: requested, Answered: answered}
	for _, raw := range items {
		refused, err := r.p.Records(r.table, raw, r.to.Add)
		if err != nil {
			return err
		}
		if refused {
			page.Refused++
		}
	}
	var all Counts
	r.note.add(&all)
	page.add(&all)
	r.note = note{all.Items, all.Refused, all.Began, all.Answered}
	r.full.progress(page)
	return nil
}

// merge compares the sorted projection with the target, and collects candidates.
func (f *full) merge(ctx context.Context, found *Findings) error {
	wanted, err := found.runs.Merge()
	if err != nil {
		return fmt.Errorf("open projection: %w", err)
	}
	defer wanted.Close()
	counts, byTable, err := f.partCounts(found.runs)
	if err != nil {
		return err
	}
	into, err := f.collect(found, &counts)
	if err != nil {
		return err
	}
	m := &merging{full: f, from: wanted, into: into, counts: &counts, byTable: byTable}
	m.rows = guarded.NewComparison(guarded.NewGuards(f.target, f.tables), f.families, f.o.Now(),
		change.Version(f.o.Now()+f.o.Lead), into)
	if err := m.run(ctx); err != nil {
		return err
	}
	counts.Equal, counts.Cells, found.read = m.rows.Equal, m.rows.All, f.o.Now()
	if err := errors.Join(into.items.Save("", nil, true), into.rows.Save("", nil, true)); err != nil {
		return err
	}
	found.Counts, found.seen, found.ByTable = counts, counts, byTable
	f.o.Progress(counts)
	return nil
}

// collect makes empty stores for the candidates. It drops the candidates of an earlier process: the
// merge finds them again.
func (f *full) collect(found *Findings, counts *Counts) (*collector, error) {
	if err := found.Close(); err != nil {
		return nil, err
	}
	var err error
	if found.cells, err = createOpenList(filepath.Join(f.o.Dir, cellFile)); err != nil {
		return nil, err
	}
	c := &collector{counts: counts, cells: found.cells}
	identity := fmt.Sprint(f.o.Identity, " ", time.Now().UnixNano())
	for _, x := range []struct {
		folder string
		store  **extsort.Store
		writer **extsort.Writer
	}{{itemFolder, &found.items, &c.items}, {rowFolder, &found.rows, &c.rows}} {
		if *x.store, err = extsort.Open(filepath.Join(f.o.Dir, x.folder), identity); err != nil {
			return nil, err
		}
		if *x.writer, err = (*x.store).Writer(0, f.o.Memory/8); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// partCounts adds up the notes of all parts, and of the parts of each table.
func (f *full) partCounts(store *extsort.Store) (c Counts, byTable []Counts, err error) {
	byTable = make([]Counts, len(f.tables))
	if f.inRange {
		return c, byTable, nil // who reads the items counts them
	}
	number := 0
	for i := range f.tables {
		for range f.tables[i].Parts {
			p, err := store.Part(number)
			if err != nil {
				return c, nil, err
			}
			if !p.Done {
				return c, nil, &extsort.DamagedError{Part: number, Err: io.ErrUnexpectedEOF}
			}
			var n note
			if err := decodeNote(p, &n); err != nil {
				return c, nil, err
			}
			n.add(&c)
			n.add(&byTable[i])
			number++
		}
	}
	return c, byTable, nil
}

// ScratchFor estimates how many bytes a full comparison of the tables needs on disk.
func ScratchFor(tables []Table) (need int64) {
	for i := range tables {
		if t := &tables[i]; t.Parts > 0 {
			need += roomFor(t.Program, t.Items, t.Bytes)
		}
	}
	return need
}

// checkRoom compares what the projection will need on disk with what is free. The error is a
// *extsort.NoRoomError.
func (f *full) checkRoom(store *extsort.Store) error {
	need := ScratchFor(f.tables) - store.Size()
	free, err := extsort.Room(f.o.Dir)
	if err == nil && need > free {
		return &extsort.NoRoomError{Dir: f.o.Dir, Need: need, Free: free}
	}
	return err
}

// noRoom returns the error of a full volume with the room that the rest needs, and other errors as
// they are. The estimate may have been too low, or something else has filled the volume.
func (f *full) noRoom(store *extsort.Store, err error) error {
	known := (*extsort.NoRoomError)(nil)
	if !errors.As(err, &known) {
		return err
	}
	full := *known
	full.Need = max(ScratchFor(f.tables)-store.Size(), 0)
	return &full
}

// roomFor estimates the runs of a table. A row that is stored by its hash needs 16 to 40 bytes for
// keys and hash, as BenchmarkFullGenerated shows, and more where keys are long; cells need at most
// what their item has. A quarter more is needed while runs are united.
func roomFor(p *transform.Program, items, bytes int64) int64 {
	f := guarded.AllFamilies([]*transform.Program{p})
	need := items * 64
	for i := range f {
		if f[i].MaxVersions != 1 || f[i].MaxAge > 0 || f[i].Aggregate != "" {
			need += bytes
			break
		}
	}
	return int64(math.Ceil(float64(need) * 1.25))
}
