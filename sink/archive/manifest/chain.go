package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// maxSize bounds what is read of a manifest: one of a hundred thousand objects has 30 MiB.
const maxSize = 64 << 20

// manifestsAtOnce is how many manifests are fetched at once: a year has 8,760, and a store answers
// in 20 to 50 ms.
const manifestsAtOnce = 16

// ChainError means that manifests are not the chain that was written.
type ChainError struct{ Finding Finding }

func (e *ChainError) Error() string { return e.Finding.Text }

// Chain yields the manifests of a table in order, those after the given head. It checks that none
// is missing, and that each one names the hash of the one before it. The last pair may be an error:
// *ChainError, *NewerFormatError, or one of the bucket.
func Chain(ctx context.Context, b bucket.Bucket, table string, after Head) iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		for l, err := range walk(ctx, b, table, after) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case len(l.faults) > 0:
				yield(nil, &ChainError{l.faults[0]})
				return
			case !yield(l.manifest, nil):
				return
			}
		}
	}
}

// link is one manifest as it was found.
type link struct {
	manifest *Manifest // nil where it cannot be read
	head     Head      // the end of the chain with it; no hash where there are no bytes
	faults   []Finding // of it, and of the link to the one before it
}

// walk yields every manifest behind a head, also those after a fault.
func walk(ctx context.Context, b bucket.Bucket, table string, after Head) iter.Seq2[link, error] {
	fetchOne := func(ctx context.Context, n uint64) (link, error) { return fetch(ctx, b, table, n) }
	return func(yield func(link, error) bool) {
		prev := after
		known := after.N == 0 || after.Hash != ""
		for l, err := range ordered(ctx, numbers(ctx, b, table, after.N), manifestsAtOnce, fetchOne) {
			if err != nil {
				yield(link{}, err)
				return
			}
			switch {
			case l.head.N != prev.N+1:
				l.faults = append(l.faults, missingManifests(prev.N+1, l.head.N-1))
			case l.manifest != nil && known && l.manifest.Prev != prev.Hash:
				l.faults = append(l.faults, brokenLink(prev.N, l.head.N))
			}
			prev, known = l.head, l.manifest != nil
			if !yield(l, nil) {
				return
			}
		}
	}
}

// numbers yields the numbers of a table's manifests behind one of them, rising.
func numbers(ctx context.Context, b bucket.Bucket, table string, after uint64) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		for info, err := range b.List(ctx, layout.Manifests(table)) {
			if err != nil {
				yield(0, fmt.Errorf("list manifests of %s: %w", table, err))
				return
			}
			if n, ok := layout.ParseManifest(table, info.Name); ok && n > after && !yield(n, nil) {
				return
			}
		}
	}
}

// fetch reads manifest n. What cannot be a manifest is a fault; the error is one of the store, or
// *NewerFormatError.
func fetch(ctx context.Context, b bucket.Bucket, table string, n uint64) (link, error) {
	l, name := link{head: Head{N: n}}, layout.Manifest(table, n)
	r, err := b.Open(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) { // deleted since it was listed
		l.faults = append(l.faults, missingManifests(n, n))
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("open manifest %d of %s: %w", n, table, err)
	}
	defer r.Close()
	if r.Size() > maxSize {
		l.faults = append(l.faults, alteredManifest(n, fmt.Sprintf("has %d bytes", r.Size())))
		return l, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		return l, fmt.Errorf("read manifest %d of %s: %w", n, table, err)
	}
	m, head, err := Decode(data)
	var newer *NewerFormatError
	switch {
	case errors.As(err, &newer):
		return l, err
	case err != nil:
		l.faults = append(l.faults, alteredManifest(n, "is not a manifest"))
		return l, nil
	case m.N != n || m.Table != table:
		l.faults = append(l.faults, alteredManifest(n, fmt.Sprintf("says that it is manifest %d of %s", m.N, m.Table)))
		return l, nil
	}
	l.manifest, l.head = m, head
	return l, nil
}

func missingManifests(from, to uint64) Finding {
	what := fmt.Sprintf("manifest %d is missing", from)
	if to > from {
		what = fmt.Sprintf("manifests %d to %d are missing", from, to)
	}
	return Finding{Kind: ManifestMissing, Grade: Different, Manifest: from,
		Text: what + ": restore them from the bucket's versions or a backup; until then what they name is not checked " +
			"(a lifecycle may delete objects, below tr_table=, and never manifests)"}
}

func alteredManifest(n uint64, how string) Finding {
	return Finding{Kind: ManifestAltered, Grade: Different, Manifest: n,
		Text: fmt.Sprintf("manifest %d was altered, it %s: restore it from the bucket's versions or a backup", n, how)}
}

func brokenLink(before, n uint64) Finding {
	return Finding{Kind: ChainBroken, Grade: Different, Manifest: n, Text: fmt.Sprintf(
		"manifest %d was written after another manifest %d than the one that is there: one of them was altered or replaced, "+
			"or two replicators wrote the chain; compare the bucket's versions of both", n, before)}
}
