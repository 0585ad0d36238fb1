package manifest

import (
	"context"
	"fmt"
	"iter"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// Depth is how much of each object Verify reads. The chain, the names and the numbers are always
// checked.
type Depth string

// The depths.
const (
	Quick Depth = "quick" // size and footer
	Bytes Depth = "bytes" // also the SHA-256 of all bytes
	Full  Depth = "full"  // also every event
)

// Options of Verify.
type Options struct {
	// Head is the end of the chain according to the table's log, zero before its first manifest;
	// nil if the log could not be read.
	Head *Head
	// From and To bound the hours of the objects that are verified; To is not included. 0: no
	// bound. The chain is always checked as a whole.
	From, To layout.Hour
	Depth    Depth // "": Bytes
	Parallel int   // objects at once; 0: 4
	// Scratch is a directory for copies of objects, so that each is fetched once; "": they are read
	// where they are.
	Scratch  string
	Read     ReadContent
	Progress func(Progress) // called after each object; may be nil
}

// Progress is how far Verify has come.
type Progress struct {
	Objects, AllObjects int64
	Bytes, AllBytes     int64
}

// Verify compares a table's archive with its manifests: is the chain whole, is each object there
// and unaltered, is there no other, are records archived twice or not at all, do the numbers of
// each hour add up. What is wrong is in the Report; an error means that the store could not be
// read, or that a newer replicator wrote it.
//
// It goes through the chain twice, so that it holds no names of objects: 12 bytes of each one, and
// some hundred of each hour and of each shard.
func Verify(ctx context.Context, b bucket.Bucket, table string, o Options) (*Report, error) {
	if o.Depth == "" {
		o.Depth = Bytes
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	v := &verifier{bucket: b, table: table, o: o, hours: hours{}, names: map[nameHash]struct{}{}, seen: newCovered()}
	r := &Report{Table: table, Verdict: OK, Depth: o.Depth, Findings: []Finding{}}
	for _, step := range []func(context.Context, *Report) error{v.chain, v.objects, v.others, v.unnamed} {
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	v.hours.report(r)
	r.add(v.seen.holes(v.hours, v.lastHour)...)
	if r.Hours == 0 {
		r.add(Finding{Kind: NothingClosed, Grade: Unproven, Text: "no hour of that time is closed, so nothing was " +
			"compared: an hour closes 5 minutes after its end, when everything of it was read and is in objects"})
	}
	return r, nil
}

// verifier is one call of Verify.
type verifier struct {
	bucket bucket.Bucket
	table  string
	o      Options

	hours    hours       // those that are asked for
	began    layout.Hour // the oldest hour of the first manifest: none before it is closed later; 0: not known
	lastHour layout.Hour
	names    map[nameHash]struct{} // of all objects that manifests name
	last     uint64                // entries up to it are in objects that manifests name, as far as hours are closed
	total    Progress
	seen     *covered
}

// chain checks the manifests and the head, and collects what they say.
func (v *verifier) chain(ctx context.Context, r *Report) error {
	for l, err := range walk(ctx, v.bucket, v.table, Head{}) {
		if err != nil {
			return err
		}
		r.add(l.faults...)
		if head := v.o.Head; head != nil && head.N > 0 && l.head.N == head.N && l.head.Hash != head.Hash {
			r.add(forked(l.head.N))
		}
		r.Head = l.head
		r.Manifests++
		if l.manifest == nil {
			continue
		}
		v.last = max(v.last, l.manifest.Last)
		if hours := l.manifest.Hours; l.manifest.N == 1 && len(hours) > 0 {
			v.began = hours[0].Hour
		}
		for i := range l.manifest.Hours {
			v.hour(r, &l.manifest.Hours[i])
		}
	}
	switch head := v.o.Head; {
	case head == nil:
		r.add(Finding{Kind: HeadUnknown, Grade: Unproven, Text: "the log of the table could not be asked for the end of " +
			"the chain: if the last manifests were deleted, that is not found; verify again when the queue can be reached"})
	case head.N == 0 && r.Head.N > 0:
		r.add(Finding{Kind: HeadUnknown, Grade: Unproven, Text: "the log of the table knows no manifest yet, as after a " +
			"recovery: if the last manifests were deleted, that is not found; verify again after the next hour"})
	case head.N > r.Head.N:
		r.add(Finding{Kind: ChainCut, Grade: Different, Manifest: r.Head.N + 1, Text: fmt.Sprintf(
			"the chain ends with manifest %d, but the replicator wrote %d: its end was cut off; "+
				"restore the manifests from the bucket's versions or a backup", r.Head.N, head.N)})
	}
	return nil
}

// hour takes one hour of a manifest.
func (v *verifier) hour(r *Report, h *Hour) {
	v.lastHour = max(v.lastHour, h.Hour)
	for i := range h.Objects {
		v.names[hashName(h.Objects[i].Name)] = struct{}{}
		_, last := entriesOf(h.Objects[i].Name)
		v.last = max(v.last, last)
	}
	if !v.wants(h.Hour) {
		return
	}
	v.hours.add(h)
	for i := range h.Objects {
		r.Objects++
		r.Bytes += h.Objects[i].Bytes
	}
	v.total.AllObjects, v.total.AllBytes = r.Objects, r.Bytes
}

func forked(n uint64) Finding {
	return Finding{Kind: ChainForked, Grade: Different, Manifest: n, Text: fmt.Sprintf(
		"manifest %d is not the one that the replicator wrote: it was altered or replaced; "+
			"restore it from the bucket's versions or a backup", n)}
}

// objects looks at every object that the manifests name, and unites what the objects cover.
func (v *verifier) objects(ctx context.Context, r *Report) error {
	for l, err := range ordered(ctx, v.list(ctx, r.Head.N), v.o.Parallel, v.look) {
		if err != nil {
			return err
		}
		r.add(l.findings...)
		twice := v.seen.add(l.part.Class, place{l.Name, l.part.Hour}, l.coverage)
		if !l.checked {
			continue
		}
		r.add(twice...)
		v.total.Objects++
		v.total.Bytes += l.Bytes
		if v.o.Progress != nil {
			v.o.Progress(v.total)
		}
	}
	return nil
}

// others names the first object that has the same records as a duplicate. What is united holds no
// names, so that the footers are read once more.
func (v *verifier) others(ctx context.Context, r *Report) error {
	open := map[string]*Finding{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Kind == Duplicate && v.seen.twice[f.Object] != nil {
			open[f.Object] = f
		}
	}
	if len(open) == 0 {
		return nil
	}
	for l, err := range ordered(ctx, unchecked(v.list(ctx, r.Head.N)), v.o.Parallel, v.look) {
		if err != nil {
			return err
		}
		for name, f := range open {
			twice := v.seen.twice[name]
			if name != l.Name && f.Class == l.part.Class && len(twice.Overlap(l.coverage)) > 0 {
				f.Other, f.Text = l.Name, duplicated(name, l.Name, twice)
				delete(open, name)
			}
		}
		if len(open) == 0 {
			return nil
		}
	}
	return nil
}

// unchecked marks objects as read for their coverage only.
func unchecked(all iter.Seq2[named, error]) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		for n, err := range all {
			if n.checked = false; !yield(n, err) {
				return
			}
		}
	}
}

// list yields the objects that the manifests up to upTo name in the requested hours and in the
// hours next to them. A shard's records need not be in the order of their times, so records that
// are missing at the edge may be in a neighboring hour.
func (v *verifier) list(ctx context.Context, upTo uint64) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		for l, err := range walk(ctx, v.bucket, v.table, Head{}) {
			if err != nil {
				yield(named{}, err)
				return
			}
			if l.head.N > upTo {
				return
			}
			if l.manifest == nil {
				continue
			}
			for _, h := range l.manifest.Hours {
				checked := v.wants(h.Hour)
				if !checked && !v.wants(h.Hour-1) && !v.wants(h.Hour+1) {
					continue
				}
				part := layout.Part{Table: v.table, Class: h.Class, Hour: h.Hour}
				for i := range h.Objects {
					if !yield(named{part, &h.Objects[i], checked}, nil) {
						return
					}
				}
			}
		}
	}
}
