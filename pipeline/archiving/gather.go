package archiving

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// piece names the entries that an object is made of.
type piece struct {
	key   ledger.PartKey
	first uint64
	last  uint64 // at most
	cutAt int64  // bytes of blocks after which it ends; 0: at last
	bytes int64  // of its blocks, about
}

// gatherMax is how many bytes of blocks are gathered in scratch at once, where one piece has not
// more.
const gatherMax = 256 << 20

// together returns the first of some pieces that are gathered at once: their entries are the same,
// or adjoin. After an outage many hours are open, and an entry has events of each; read for one
// piece after another, the stream would be read as often as there are hours.
func together(pieces []piece) []piece {
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	end, bytes := uint64(0), int64(0)
	for n, p := range pieces {
		if bytes += p.bytes; n > 0 && (p.first > end+1 || bytes > gatherMax) {
			return pieces[:n]
		}
		end = max(end, p.last)
	}
	return pieces
}

// gathered is what the entries have for an object: its blocks, in a file of scratch, one behind the
// other, each with the table, the source and its length before it.
type gathered struct {
	piece
	intent  ledger.Intent // without what only the events say
	hash    ledger.Hash   // of the last entry with events of the part
	covered coverage.Set  // what other objects have of the class
	file    *os.File
	w       *bufio.Writer
}

// discard gives the file's room back.
func (g *gathered) discard() { _ = g.file.Close() }

// full reports whether the piece has all its entries.
func (g *gathered) full() bool {
	return g.intent.Last >= g.last || g.cutAt > 0 && g.intent.Stored >= g.cutAt
}

// gather reads the entries of pieces once, and keeps the blocks of each. The caller discards what
// it returns.
func (l *life) gather(ctx context.Context, pieces []piece) (all []*gathered, err error) {
	defer func() {
		if err != nil {
			discard(all)
			all = nil
		}
	}()
	first := pieces[0].first
	covered := map[transform.EventClass]coverage.Set{}
	for _, p := range pieces {
		if covered[p.key.Class] == nil {
			covered[p.key.Class] = l.covered(p.key.Class)
		}
		f, err := l.a.o.temporary()
		if err != nil {
			return all, &sinkError{sink: SinkObjects, err: fmt.Errorf("gather events: %w", err)}
		}
		first = min(first, p.first)
		all = append(all, &gathered{
			piece: p, covered: covered[p.key.Class], file: f, w: bufio.NewWriter(f),
			intent: ledger.Intent{Class: p.key.Class, Hour: p.key.Hour, First: p.first, Coverage: coverage.Set{}},
		})
	}
	r := l.w.journal.Read(first)
	defer r.Close(context.WithoutCancel(ctx))
	for slices.ContainsFunc(all, func(g *gathered) bool { return !g.full() }) {
		seq, msg, err := r.Next(ctx)
		if err != nil {
			return all, err
		}
		if err := addEntry(all, seq, msg); err != nil {
			return all, err
		}
	}
	for _, g := range all {
		if err := g.w.Flush(); err != nil {
			return all, &sinkError{sink: SinkObjects, err: fmt.Errorf("gather events: %w", err)}
		}
	}
	return all, nil
}

// covered returns what objects have of a class. It is a copy: records that are stored meanwhile let
// the state forget what is old.
func (l *life) covered(class transform.EventClass) (c coverage.Set) {
	l.w.view(func(s *ledger.State) { c = s.Covered[class].Clone() })
	return c
}

func discard(all []*gathered) {
	for _, g := range all {
		g.discard()
	}
}

// addEntry adds an entry to those pieces that it belongs to.
func addEntry(all []*gathered, seq uint64, msg []byte) error {
	e, err := decode(seq, msg)
	if err != nil {
		return err
	}
	events, ok := e.Body.(*ledger.Events)
	var hash ledger.Hash
	if ok && len(events.Groups) > 0 {
		hash = ledger.HashOf(msg)
	}
	for _, g := range all {
		if seq < g.first || g.full() {
			continue
		}
		if g.intent.Last = seq; !ok {
			continue
		}
		for n := range events.Groups {
			if group := &events.Groups[n]; group.Class == g.key.Class && group.Hour == g.key.Hour {
				g.hash = hash
				if err := g.add(e, group); err != nil {
					return fmt.Errorf("read entry %d of the archive's stream: %w", seq, err)
				}
			}
		}
	}
	return nil
}

// add adds a group of an entry.
func (g *gathered) add(e *ledger.Entry, group *ledger.Group) error {
	b, err := e.Block(group)
	if err != nil {
		return err
	}
	g.intent.Coverage.Union(group.Coverage)
	for key := range group.Coverage { // those of the group alone: objects of three days cover thousands of shards
		g.intent.Coverage.Subtract(coverage.Set{key: g.covered[key]})
	}
	g.intent.Stored += int64(group.Length)
	for _, part := range [][]byte{[]byte(b.Table), []byte(b.Source), b.Stored} {
		_, err = g.w.Write(binary.AppendUvarint(nil, uint64(len(part))))
		if err == nil {
			_, err = g.w.Write(part)
		}
		if err != nil {
			return &sinkError{sink: SinkObjects, err: fmt.Errorf("gather events: %w", err)}
		}
	}
	return nil
}

// each calls yield for the events of the piece that no other object has.
func (g *gathered) each(yield func(*transform.Event) error) error {
	if _, err := g.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for r := bufio.NewReader(g.file); ; {
		var parts [3][]byte
		for n := range parts {
			size, err := binary.ReadUvarint(r)
			if n == 0 && errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				parts[n] = make([]byte, size)
				_, err = io.ReadFull(r, parts[n])
			}
			if err != nil {
				return fmt.Errorf("read what was gathered: %w", err)
			}
		}
		b := ledger.Block{Class: g.key.Class, Table: string(parts[0]), Source: string(parts[1]), Stored: parts[2]}
		err := b.Each(func(e *transform.Event) error {
			if g.covered.Contains(coverage.Key(e.Stream, e.Shard), e.Sequence) { // by an object that was adopted
				return nil
			}
			return yield(e)
		})
		if err != nil {
			return err
		}
	}
}
