package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// DumpOptions choose what is dumped.
type DumpOptions struct {
	Shard    string          // only changes of this shard; "": all
	From     string          // first entry: a sequence number, or a time (RFC 3339); "": the oldest
	Since    time.Duration   // first entry: the first one stored within this time, instead of From; 0: From
	Kinds    map[string]bool // only these kinds of lines; nil: all
	Keys     map[uint64]bool // only changes of items with these key hashes; nil: all
	Limit    int             // maximum number of lines; 0: all
	ShowData bool            // with keys and images
}

// DumpedLine is one line: a change, or an entry without changes.
type DumpedLine struct {
	Schema  int             `json:"schema"` // set by the command
	Seq     uint64          `json:"seq"`
	Hash    string          `json:"hash"` // of the entry, and the id of its trace
	Table   string          `json:"table"`
	Kind    string          `json:"kind"`
	Owner   string          `json:"owner,omitempty"`
	Epoch   uint64          `json:"epoch"`
	Shard   string          `json:"shard,omitempty"`
	Version change.Version  `json:"version,omitempty"`
	Op      string          `json:"op,omitempty"`
	TTL     bool            `json:"ttl,omitempty"`
	KeyHash string          `json:"key_hash,omitempty"`
	Bytes   int             `json:"bytes"`
	Body    any             `json:"body,omitempty"`
	Keys    json.RawMessage `json:"keys,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
}

// errDumpLimit ends a dump at its limit.
var errDumpLimit = errors.New("limit reached")

// Dumper dumps the log of one table.
type Dumper struct {
	o     DumpOptions
	log   *queue.Log
	print func(*DumpedLine) error
	lines int
	end   checkpoint.Mark // of the newest entry that was dumped
}

// NewDumper returns what dumps a table's log: it calls print with each line.
func NewDumper(log *queue.Log, o DumpOptions, print func(*DumpedLine) error) *Dumper {
	return &Dumper{o: o, log: log, print: print}
}

// Next dumps the entries from the one that the options name, or from behind the last call's newest
// one, to the newest of this moment. It reports whether the limit of lines was reached.
func (d *Dumper) Next(ctx context.Context) (full bool, err error) {
	if d.end.Seq == 0 {
		err = d.begin(ctx)
	} else {
		d.end, err = queue.Walk{Log: d.log, After: d.end}.Entries(ctx, d.entry)
	}
	if errors.Is(err, errDumpLimit) {
		return true, nil
	}
	return false, err
}

// Restart lets the next call of Next begin at the oldest entry: those behind the last one are
// trimmed.
func (d *Dumper) Restart() { d.end, d.o.From, d.o.Since = checkpoint.Mark{}, "", 0 }

// begin dumps the entries from the first one of the options to the newest of this moment.
func (d *Dumper) begin(ctx context.Context) error {
	info, err := d.log.Info(ctx)
	if err != nil {
		return err
	}
	from, err := d.first(ctx)
	if err != nil || from > info.Last {
		return err
	}
	d.end, err = queue.Walk{Log: d.log, From: from}.Entries(ctx, d.entry)
	return err
}

// first returns the sequence number of the first entry; 0 is the oldest.
func (d *Dumper) first(ctx context.Context) (uint64, error) {
	if d.o.Since > 0 {
		return d.log.SeqAt(ctx, time.Now().Add(-d.o.Since))
	}
	if d.o.From == "" {
		return 0, nil
	}
	if seq, err := strconv.ParseUint(d.o.From, 10, 64); err == nil {
		return seq, nil
	}
	at, err := time.Parse(time.RFC3339, d.o.From)
	if err != nil {
		return 0, failure.Usagef("for example 1234 or 2026-11-21T14:00:00Z",
			"--from %q is neither a sequence number nor a time", d.o.From)
	}
	return d.log.SeqAt(ctx, at)
}

// entry prints an entry: a frame as a line for each change, any other one as a line with its body.
func (d *Dumper) entry(e *queue.WalkedEntry) error {
	line := DumpedLine{Seq: e.Seq, Hash: e.Hash.String(), Table: d.log.Table(), Owner: e.Owner, Epoch: e.Epoch}
	line.Kind, line.Bytes = e.Kind.String(), len(e.Data)
	everything := d.o.Keys == nil && d.o.Shard == ""
	pages, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		if !everything {
			return nil
		}
		line.Body = e.Body
		return d.add(&line)
	}
	if everything && len(pages.Pages) > 0 && recordsOf(pages) == 0 {
		line.Body = pages
		return d.add(&line)
	}
	line.Kind = "change"
	return e.Changes(func(c *queue.WalkedChange) error { return d.change(line, c) })
}

func recordsOf(f *checkpoint.Frame) (n int) {
	for _, p := range f.Pages {
		n += p.Records
	}
	return n
}

// change prints a change, unless the options leave it out.
func (d *Dumper) change(line DumpedLine, c *queue.WalkedChange) error {
	if d.o.Shard != "" && c.Feed.Shard != d.o.Shard || d.o.Keys != nil && !d.o.Keys[c.KeyHash] {
		return nil
	}
	line.Shard, line.Version, line.Op, line.TTL = c.Feed.Shard, c.Version, c.Op.String(), c.TTL
	line.KeyHash, line.Bytes = change.HashText(c.KeyHash), len(c.Raw)
	if d.o.ShowData {
		line.Keys, line.New, line.Old = bytes.Clone(c.Keys), bytes.Clone(c.New), bytes.Clone(c.Old)
	}
	return d.add(&line)
}

// DumpKinds returns the kinds of lines: changes, and the entries without changes.
func DumpKinds() []string {
	kinds := []string{"change"}
	for k := range math.MaxUint8 {
		if kind := checkpoint.Kind(k); kind.String() != "unknown" {
			kinds = append(kinds, kind.String())
		}
	}
	slices.Sort(kinds)
	return kinds
}

// DumpKindsOf reads the names of kinds of lines, separated by commas; nil for none.
func DumpKindsOf(names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	kinds := map[string]bool{}
	for _, name := range names {
		if !slices.Contains(DumpKinds(), name) {
			return nil, failure.Usagef(strings.Join(DumpKinds(), ", "), "%q is no kind of line", name)
		}
		kinds[name] = true
	}
	return kinds, nil
}

func (d *Dumper) add(line *DumpedLine) error {
	if d.o.Kinds != nil && !d.o.Kinds[line.Kind] {
		return nil
	}
	if err := d.print(line); err != nil {
		return err
	}
	if d.lines++; d.lines == d.o.Limit {
		return errDumpLimit
	}
	return nil
}
