package ledger

import (
	"encoding/gob"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

// saveFormat is the version of saved ledgers.
const saveFormat = 1

// savedLedger, savedBook and savedLine are the stored form of a ledger.
type savedLedger struct {
	Format  int
	Numbers sequence.Numbers
	Tables  map[string]savedBook
}

type savedBook struct {
	Keys  []string
	Names []string
	Lines []savedLine
}

type savedLine struct {
	Seq, Images uint64
	Item, Shard uint32
	Op          byte
	TTL         bool
}

// Save writes all changes.
func (l *Ledger) Save(w io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := savedLedger{Format: saveFormat, Numbers: l.numbers, Tables: map[string]savedBook{}}
	for name, b := range l.tables {
		one := savedBook{Keys: b.keys, Names: b.names, Lines: make([]savedLine, len(b.lines))}
		for i, ln := range b.lines {
			one.Lines[i] = savedLine{ln.seq, ln.images, ln.item, ln.shard, ln.op, ln.ttl}
		}
		out.Tables[name] = one
	}
	if err := gob.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	return nil
}

// Restore reads what Save wrote into an empty ledger.
func (l *Ledger) Restore(r io.Reader) error {
	var in savedLedger
	if err := gob.NewDecoder(r).Decode(&in); err != nil {
		return fmt.Errorf("restore ledger: %w", err)
	}
	if in.Format != saveFormat {
		return fmt.Errorf("restore ledger: format %d, this version reads %d", in.Format, saveFormat)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers = in.Numbers
	for name, one := range in.Tables {
		b := newBook()
		for _, ln := range one.Lines {
			b.add(Commit{
				Item: []byte(one.Keys[ln.Item]), Op: opName(ln.Op), TTL: ln.TTL,
				Shard: one.Names[ln.Shard], Seq: ln.Seq, Images: ln.Images,
			})
		}
		l.tables[name] = b
	}
	return nil
}
