package ledger

import "fmt"

// Delivery is one change as somebody delivered it, in the order of delivery.
type Delivery struct {
	Table  string `json:"table"`
	Shard  string `json:"shard"`
	Seq    string `json:"seq"`              // sequence number
	Images uint64 `json:"images,omitempty"` // HashImages; 0: not compared
}

// Verdict is the answer to "is this exactly what was delivered, once each, in order per
// item?". Each list holds the first Examples; the counts are complete.
type Verdict struct {
	Exact      bool `json:"exact"` // delivered everything, once each, in order, nothing else
	Committed  int  `json:"committed"`
	Delivered  int  `json:"delivered"`
	Missing    int  `json:"missing"`      // committed on a shard, never delivered
	Repeated   int  `json:"repeated"`     // delivered again
	OutOfOrder int  `json:"out_of_order"` // delivered after a later change of the same item
	Unknown    int  `json:"unknown"`      // never committed
	Different  int  `json:"different"`    // other images than committed
	Unstreamed int  `json:"unstreamed"`   // committed while the stream was off: not expected

	Examples []string `json:"examples,omitempty"` // of the trouble, in words
}

const maxExamples = 20

// Check compares deliveries with everything committed so far to the given tables; no
// tables means all. Repeats of a change that come before any later change of its item
// count as repeated, not as out of order.
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

type check struct {
	l      *Ledger
	v      Verdict
	seen   map[string][]bool   // per line
	newest map[string][]uint32 // per item: highest count delivered
}

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
			c.note(&c.v.Missing, "missing: %s %s change %d, %s on %s", table, b.keys[ln.item], ln.count, c.l.numbers.Text(ln.seq), b.names[ln.shard])
		}
	}
}

func (c *check) note(count *int, format string, args ...any) {
	*count++
	if len(c.v.Examples) < maxExamples {
		c.v.Examples = append(c.v.Examples, fmt.Sprintf(format, args...))
	}
}
