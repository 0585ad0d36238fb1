package ledger

import "fmt"

// Delivery is one change as a consumer delivered it.
type Delivery struct {
	Table  string `json:"table"`
	Shard  string `json:"shard"`
	Seq    string `json:"seq"`              // sequence number
	Images uint64 `json:"images,omitempty"` // HashImages; 0: not compared
}

// Verdict is the result of a check: whether a consumer delivered exactly what was committed, once
// each and in order per item, and how many deliveries are wrong in each way.
type Verdict struct {
	Exact      bool `json:"exact"` // everything was delivered, once each, in order, and nothing else
	Committed  int  `json:"committed"`
	Delivered  int  `json:"delivered"`
	Missing    int  `json:"missing"`      // committed on a shard, never delivered
	Repeated   int  `json:"repeated"`     // delivered again
	OutOfOrder int  `json:"out_of_order"` // delivered after a later change of the same item
	Unknown    int  `json:"unknown"`      // never committed
	Different  int  `json:"different"`    // other images than committed
	Unstreamed int  `json:"unstreamed"`   // committed while the stream was disabled: not expected

	Examples []string `json:"examples,omitempty"` // the first wrong deliveries, in words
}

// maxExamples is how many wrong deliveries a verdict describes.
const maxExamples = 20

// Check compares deliveries, in the order of delivery, with everything committed so far to the
// given tables; no tables means all. A change that is repeated before any later change of its item
// counts as repeated, not as out of order.
func (l *Ledger) Check(deliveries []Delivery, tables ...string) Verdict {
	if len(tables) == 0 {
		tables = l.Tables()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := check{l: l, seen: map[string][]bool{}, newest: map[string][]uint32{}}
	for _, name := range tables {
		if b := l.tables[name]; b != nil {
			c.seen[name], c.newest[name] = make([]bool, len(b.lines)), make([]uint32, len(b.keys))
		}
	}
	for i := range deliveries {
		c.deliver(&deliveries[i])
	}
	for _, name := range tables {
		c.finish(name)
	}
	c.v.Delivered = len(deliveries)
	c.v.Exact = c.v.Missing+c.v.Repeated+c.v.OutOfOrder+c.v.Unknown+c.v.Different == 0
	return c.v
}

// check is a check under way.
type check struct {
	l      *Ledger
	v      Verdict
	seen   map[string][]bool   // by table and line: whether it was delivered
	newest map[string][]uint32 // by table and item: the highest Count that was delivered
}

// deliver checks one delivery against those before it.
func (c *check) deliver(d *Delivery) {
	b, seen := c.l.tables[d.Table], c.seen[d.Table]
	at := -1
	if seq, ok := c.l.numbers.Parse(d.Seq); ok && seen != nil {
		at = b.find(d.Shard, seq)
	}
	if at < 0 {
		c.note(&c.v.Unknown, "unknown: %s %s %s", d.Table, d.Shard, d.Seq)
		return
	}
	ln := b.lines[at]
	newest := &c.newest[d.Table][ln.item]
	switch {
	case *newest > ln.count:
		c.note(&c.v.OutOfOrder, "out of order: %s %s change %d after %d", d.Table, b.keys[ln.item], ln.count, *newest)
	case seen[at]:
		c.note(&c.v.Repeated, "repeated: %s %s change %d", d.Table, b.keys[ln.item], ln.count)
	}
	*newest = max(*newest, ln.count)
	if d.Images != 0 && d.Images != ln.images {
		c.note(&c.v.Different, "different images: %s %s change %d", d.Table, b.keys[ln.item], ln.count)
	}
	seen[at] = true
}

// finish counts the changes of a table that were not delivered.
func (c *check) finish(table string) {
	b := c.l.tables[table]
	if b == nil {
		return
	}
	c.v.Committed += len(b.lines)
	for at, ln := range b.lines {
		switch {
		case ln.shard == 0:
			c.v.Unstreamed++
		case !c.seen[table][at]:
			c.note(&c.v.Missing, "missing: %s %s change %d, %s on %s", table, b.keys[ln.item], ln.count,
				c.l.numbers.Text(ln.seq), b.names[ln.shard])
		}
	}
}

// note counts a wrong delivery and describes it, up to maxExamples.
func (c *check) note(count *int, format string, args ...any) {
	*count++
	if len(c.v.Examples) < maxExamples {
		c.v.Examples = append(c.v.Examples, fmt.Sprintf(format, args...))
	}
}
