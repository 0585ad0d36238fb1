package resync

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source/export"
)

// takeMarks takes over the files that the workers have marked since the last look. Lines that they
// hand back are written, or become dead letters, before the file counts (Rule 1). Files without
// such lines come first: one item that cannot be written keeps none of them from its mark.
//
// That may take hours for all files of a mapping that refuses much. So it begins no such file after
// a limit, and reports that there is more: without beats the workers end, and a gap must close the
// order.
func (w *workers) takeMarks(ctx context.Context, limit time.Duration) (more bool, err error) {
	began := time.Now()
	var later []int // rows with lines that are handed back
	for row := range delegation.Rows(w.order.Export.Files) {
		if !w.anyOpen(row) {
			continue
		}
		all, err := w.marked(ctx, row)
		if err != nil {
			return false, err
		}
		for _, m := range all {
			if len(m.mark.HandedBack) == 0 {
				w.finish(m, 0)
			} else if n := len(later); n == 0 || later[n-1] != row {
				later = append(later, row)
			}
		}
	}
	for _, row := range later {
		all, err := w.marked(ctx, row)
		if err != nil {
			return false, err
		}
		for _, m := range all {
			if time.Since(began) >= limit {
				return true, nil
			}
			letters, err := w.writeHandedBack(ctx, m.file, m.mark.HandedBack)
			if err != nil {
				return false, err
			}
			w.finish(m, letters)
		}
	}
	return false, nil
}

// marked is a file that workers have marked.
type marked struct {
	file int
	mark *delegation.FileMark
}

// marked returns the files of one row of marks that are not taken over, by number.
func (w *workers) marked(ctx context.Context, row int) (all []marked, err error) {
	open := func(file int) bool { return file < w.copy.Parts && !w.parts.done(file) }
	err = w.o.Workers.Store.LoadFileMarks(ctx, w.order, row, open, func(file int, m *delegation.FileMark) error {
		all = append(all, marked{file, m})
		return nil
	})
	slices.SortFunc(all, func(a, b marked) int { return a.file - b.file })
	return all, err
}

// finish takes over a file, every item of which is durable or one of the letters.
func (w *workers) finish(m marked, letters int64) {
	w.parts.finish(m.file, checkpoint.CopyMark{Items: m.mark.Items, Bytes: m.mark.Bytes, Letters: letters})
	w.stats.addItems(m.mark.Items, m.mark.Bytes)
}

// anyOpen reports whether a row of marks has files that are not done.
func (w *workers) anyOpen(row int) bool {
	for file := row * delegation.FilesPerRow; file < min((row+1)*delegation.FilesPerRow, w.copy.Parts); file++ {
		if !w.parts.done(file) {
			return true
		}
	}
	return false
}

// writeHandedBack writes the lines of a file that the workers hand back, in the lanes of their
// items. It returns how many became dead letters.
func (w *workers) writeHandedBack(ctx context.Context, file int, lines []int64) (letters int64, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	b := &batch{
		last: true, version: max(protocol.VersionOfExport(w.export.Time), change.LowestRead(w.o.Floor)), requested: w.o.Now(),
		proof: w.export.Time + answerMargin, at: time.Now(),
	}
	err = w.export.ReadFile(ctx, file, lines[0]-1, func(l export.Line) error {
		if _, handed := slices.BinarySearch(lines, l.N); handed {
			b.items = append(b.items, slices.Clone(l.Item))
		}
		return nil
	})
	if err == nil && len(b.items) != len(lines) { // Rule 8: the mark is no proof of the others
		err = fmt.Errorf("of %d lines that the mark names, file %d has %d: `replicator copy takeback` copies it again",
			len(lines), file, len(b.items))
	}
	if err != nil {
		return 0, fmt.Errorf("read what workers hand back: %w", err)
	}
	pg := pack(b, "")
	if err := w.awaitProof(ctx, pg); err != nil {
		return 0, err
	}
	if err := w.writeProven(ctx, pg); err != nil {
		return 0, err
	}
	return pg.letters.Load(), nil
}

// sameExport returns an error where another export is in the place of the order's: lines that
// workers hand back are lines of theirs.
func (w *workers) sameExport() error {
	if of := w.order.Export.Digest; of != "" && of != w.export.Digest() {
		return fmt.Errorf("export %s has other files than when the order was opened", w.export.URL)
	}
	return nil
}
