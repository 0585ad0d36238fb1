package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// selected is what a repair was asked for. It is read twice: counted, and then repaired.
type selected struct {
	io.Closer
	name string // of the file or the export, in messages
	all  iter.Seq2[*report.Difference, error]
}

// each calls f with everything that is asked for.
func (r *Repairer) each(ctx context.Context, f func(*report.Difference) error) error {
	selected, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer selected.Close()
	for d, err := range selected.all {
		if err == nil {
			err = f(d)
		}
		if err != nil && !failure.Known(err) && !r.counted && r.Export == "" {
			return failure.Usagef("nothing was changed; correct it and repeat the command", "%s: %w", selected.name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens what the options select.
func (r *Repairer) open(ctx context.Context) (*selected, error) {
	if r.From != "" {
		return r.openDifferences()
	}
	t, err := r.table(r.Table)
	if err != nil {
		return nil, err
	}
	if r.Export != "" {
		return r.openExport(ctx, t)
	}
	return r.openKeys(t)
}

// table returns a configured table.
func (r *Repairer) table(name string) (*catalog.Table, error) {
	t := r.Catalog.Table(name)
	if t == nil {
		return nil, failure.Usagef(hintDifferences, "no table %q is configured", name)
	}
	return t, nil
}

// openDifferences opens a file of differences.
func (r *Repairer) openDifferences() (*selected, error) {
	file, err := os.Open(r.From)
	if err != nil {
		return nil, failure.Usagef("`replicator verify --differences FILE` writes it", "%w", err)
	}
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() { // the second reading would find nothing
		_ = file.Close()
		return nil, failure.Usagef("store the differences in a file first",
			"%s is no regular file, and it is read twice", r.From)
	}
	return &selected{file, r.From, report.Differences(file)}, nil
}

// openKeys opens a file of keys. What can be read only once, stdin and pipes, stays in memory.
func (r *Repairer) openKeys(t *catalog.Table) (*selected, error) {
	in := io.NopCloser(r.Stdin)
	switch {
	case r.stdin != nil:
		in = io.NopCloser(bytes.NewReader(r.stdin))
	case r.Keys != "-":
		file, err := os.Open(r.Keys)
		if err != nil {
			return nil, failure.Usagef("--keys names a file with one key per line, or - for stdin", "%w", err)
		}
		in = file
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return &selected{file, r.Keys, keysOf(t, file)}, nil
		}
	}
	defer in.Close()
	if r.stdin == nil {
		keys, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		r.stdin = append([]byte{}, keys...)
	}
	return &selected{io.NopCloser(nil), r.Keys, keysOf(t, bytes.NewReader(r.stdin))}, nil
}

// keysOf yields the items that a file of keys names.
func keysOf(t *catalog.Table, in io.Reader) iter.Seq2[*report.Difference, error] {
	return func(yield func(*report.Difference, error) bool) {
		for key, err := range control.ReadKeys(in, t.Info.Schema) {
			if !yield(&report.Difference{Table: t.Source, Target: t.Target, Key: bytes.Clone(key)}, err) {
				return
			}
		}
	}
}

// openExport opens the export of the options.
func (r *Repairer) openExport(ctx context.Context, t *catalog.Table) (_ *selected, err error) {
	if r.export == nil {
		if r.export, err = r.OpenExport(ctx, t); err != nil {
			return nil, err
		}
	}
	changed := func(yield func(*report.Difference, error) bool) {
		for it, err := range control.ChangedKeys(ctx, r.export) {
			if !yield(&report.Difference{Table: t.Source, Target: t.Target, Key: it.Key}, err) || err != nil {
				return
			}
		}
	}
	return &selected{io.NopCloser(nil), r.Export, changed}, nil
}
