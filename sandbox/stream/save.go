package stream

import (
	"encoding/gob"
	"fmt"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

const saveFormat = 1

// restoreGap is how far the sequence numbers of a restored engine begin past the saved ones:
// numbers assigned between the save and a crash must not be assigned again.
const restoreGap = 100_000_000

// What Save writes: one savedEngine, then for each stream a savedStream with its shards.
type savedEngine struct {
	Format  int
	Numbers sequence.Numbers
	Last    uint64
	LastMs  int64
	Current map[string]string // ARN per table
	Streams int
}

type savedStream struct {
	Table, ARN, Label, View string
	KeySchema               []byte
	Created                 time.Time
	Off                     bool
	Parts                   []savedPart
	Shards                  int
}

type savedPart struct {
	Last  uint64
	Shard string
}

type savedShard struct {
	ID, Parent string
	First, End uint64
	Created    time.Time
	Closed     bool
	ClosedAt   time.Time
	Trimmed    uint64
	Segments   []savedSegment
}

type savedSegment struct {
	Buf []byte
	Idx []savedEntry
}

type savedEntry struct {
	Seq            uint64
	Created        int64
	Off, End, Size uint32
}

// Save writes all streams with their records, as of one moment.
func (e *Engine) Save(w io.Writer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := gob.NewEncoder(w)
	head := savedEngine{
		Format: saveFormat, Numbers: e.o.Numbers, Last: e.last.Load(), LastMs: e.lastMs.Load(),
		Current: map[string]string{}, Streams: len(e.streams),
	}
	for name, t := range e.tables {
		if t.current != nil {
			head.Current[name] = t.current.arn
		}
	}
	if err := out.Encode(head); err != nil {
		return fmt.Errorf("save streams: %w", err)
	}
	for _, s := range e.streams {
		if err := s.save(out); err != nil {
			return fmt.Errorf("save stream %s: %w", s.arn, err)
		}
	}
	return nil
}

// save writes a stream and its shards.
func (s *stream) save(out *gob.Encoder) error {
	head := savedStream{
		Table: s.table, ARN: s.arn, Label: s.label, View: s.view, KeySchema: s.keySchema, Created: s.created,
		Off: s.off, Shards: len(s.shards),
	}
	for _, p := range s.parts {
		head.Parts = append(head.Parts, savedPart{p.last, p.shard.id})
	}
	if err := out.Encode(head); err != nil {
		return err
	}
	for _, sh := range s.shards {
		if err := out.Encode(sh.saved()); err != nil {
			return err
		}
	}
	return nil
}

// saved returns a shard as it is stored.
func (sh *shard) saved() savedShard {
	out := savedShard{
		ID: sh.id, Parent: sh.parent, First: sh.first, End: sh.end, Created: sh.created,
		Closed: sh.closed, ClosedAt: sh.closedAt, Trimmed: sh.trimmed,
	}
	for _, seg := range sh.segments {
		one := savedSegment{Buf: seg.buf}
		for _, en := range seg.idx {
			one.Idx = append(one.Idx, savedEntry{en.seq, en.created, en.off, en.end, en.size})
		}
		out.Segments = append(out.Segments, one)
	}
	return out
}

// Restore reads what Save wrote into an engine without streams. The engine continues the saved
// sequence numbers.
func (e *Engine) Restore(r io.Reader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := gob.NewDecoder(r)
	var head savedEngine
	if err := in.Decode(&head); err != nil {
		return fmt.Errorf("restore streams: %w", err)
	}
	if head.Format != saveFormat {
		return fmt.Errorf("restore streams: format %d, this version reads %d", head.Format, saveFormat)
	}
	e.o.Numbers = head.Numbers
	e.last.Store(head.Last + restoreGap)
	e.lastMs.Store(head.LastMs)
	for range head.Streams {
		s, err := restoreStream(in)
		if err != nil {
			return fmt.Errorf("restore stream: %w", err)
		}
		e.streams, e.byARN[s.arn] = append(e.streams, s), s
	}
	for name, arn := range head.Current {
		e.table(name).current = e.byARN[arn]
	}
	return nil
}

// restoreStream reads a stream and its shards.
func restoreStream(in *gob.Decoder) (*stream, error) {
	var head savedStream
	if err := in.Decode(&head); err != nil {
		return nil, err
	}
	s := &stream{
		table: head.Table, arn: head.ARN, label: head.Label, view: head.View, keySchema: head.KeySchema,
		created: head.Created, off: head.Off, byID: map[string]*shard{},
	}
	for range head.Shards {
		var one savedShard
		if err := in.Decode(&one); err != nil {
			return nil, err
		}
		sh := one.shard()
		s.shards, s.byID[sh.id] = append(s.shards, sh), sh
	}
	sortByID(s.shards)
	for _, p := range head.Parts {
		sh := s.byID[p.Shard]
		if sh == nil {
			return nil, fmt.Errorf("%s: no shard %s", s.arn, p.Shard)
		}
		s.parts = append(s.parts, partition{p.Last, sh})
	}
	return s, nil
}

// shard returns a stored shard as the engine holds it.
func (one *savedShard) shard() *shard {
	sh := &shard{
		id: one.ID, parent: one.Parent, first: one.First, end: one.End, created: one.Created,
		closed: one.Closed, closedAt: one.ClosedAt, trimmed: one.Trimmed,
	}
	for _, seg := range one.Segments {
		back := &segment{buf: seg.Buf}
		for _, en := range seg.Idx {
			back.idx = append(back.idx, entry{en.Seq, en.Created, en.Off, en.End, en.Size})
		}
		sh.count += len(back.idx)
		sh.segments = append(sh.segments, back)
	}
	return sh
}
