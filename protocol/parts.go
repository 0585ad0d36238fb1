package protocol

import "github.com/tailrace-cdc/replicator/checkpoint"

// Parts tracks how far the parts of a copy have been read and written: segments of a scan, or files
// of an export. Pages of a part are read in order and written in any order. It is for one
// goroutine.
type Parts struct {
	All  []*Part
	open int // parts that are not done
}

// Part is one part of a copy.
type Part struct {
	Number int

	next    string // position after which the next page is read
	ended   bool   // its last page was read
	taken   bool   // by a reader
	rewinds int    // how often it was sent back to an earlier position
	pages   []*CopyPage
	mark    checkpoint.CopyMark
	moved   bool // the mark has moved since it was stored
}

// CopyPage is a page of a part in hand: read, and not durable.
type CopyPage struct {
	From, After string // the positions that it lies between
	Last        bool   // of its part
	Items       int
	Bytes       int
	Letters     int64 // items that became dead letters

	done bool // every item is durable, or a dead letter
}

// NewParts returns the parts of a copy at their marks.
func NewParts(c *checkpoint.CopyState) *Parts {
	p := &Parts{}
	for i := range c.Parts {
		x := &Part{Number: i, mark: c.Marks[i]}
		x.next, x.ended = x.mark.After, x.mark.Done
		p.All = append(p.All, x)
		if !x.mark.Done {
			p.open++
		}
	}
	return p
}

// Readable reports whether the part has another page to read and no reader has taken it.
func (x *Part) Readable() bool { return !x.taken && !x.ended }

// Done reports whether everything of the part is durable.
func (x *Part) Done() bool { return x.mark.Done }

// Take takes a readable part for a reader.
func (x *Part) Take() { x.taken = true }

// GiveBack lets the part be taken again.
func (x *Part) GiveBack() { x.taken = false }

// Position returns where the part is read next, and how often it was sent back before.
func (x *Part) Position() (from string, rewinds int) { return x.next, x.rewinds }

// Add notes a page that was read at a position. It returns false if the part was sent back to an
// earlier one meanwhile: the page is read again then.
func (x *Part) Add(pg *CopyPage, rewinds int) bool {
	if x.rewinds != rewinds {
		return false
	}
	x.pages = append(x.pages, pg)
	x.next, x.ended = pg.After, pg.Last
	return true
}

// Complete notes that a page's items are durable, and moves the part's mark to the end of the
// contiguous durable pages.
//
// Rule 1: a mark never passes an item that is neither durable nor a dead letter.
func (p *Parts) Complete(x *Part, pg *CopyPage) {
	pg.done = true
	n := 0
	for n < len(x.pages) && x.pages[n].done {
		d := x.pages[n]
		x.mark = checkpoint.CopyMark{
			After: d.After, Items: x.mark.Items + int64(d.Items), Bytes: x.mark.Bytes + int64(d.Bytes),
			Letters: x.mark.Letters + d.Letters, Done: d.Last,
		}
		x.moved = true
		n++
	}
	clear(x.pages[:n])
	x.pages = x.pages[n:]
	if n > 0 && x.mark.Done {
		p.open--
	}
}

// Finish notes that a whole part, of which no page is in hand, was made durable outside the
// process. Marks never go back, also where the part was begun by pages.
func (p *Parts) Finish(x *Part, whole checkpoint.CopyMark) {
	if x.mark.Done {
		return
	}
	x.mark = checkpoint.CopyMark{
		After: x.mark.After, Items: max(x.mark.Items, whole.Items), Bytes: max(x.mark.Bytes, whole.Bytes),
		Letters: max(x.mark.Letters, whole.Letters), Done: true,
	}
	x.ended, x.moved = true, true
	p.open--
}

// ReadAgain sends a part back to the begin of a page that became too old before it was written, and
// reports whether it did. The pages after it are read again, too, because the new page may end
// elsewhere. Writing an item twice does no harm.
func (x *Part) ReadAgain(pg *CopyPage) bool {
	for i, other := range x.pages {
		if other == pg {
			x.pages = x.pages[:i]
			x.next, x.ended = pg.From, false
			x.rewinds++
			return true
		}
	}
	return false
}

// Marks returns the marks of all parts.
func (p *Parts) Marks() map[int]checkpoint.CopyMark {
	marks := map[int]checkpoint.CopyMark{}
	for _, x := range p.All {
		if x.mark != (checkpoint.CopyMark{}) {
			marks[x.Number] = x.mark
		}
	}
	return marks
}

// TakeMoved returns the marks of the parts that have moved since the last call.
func (p *Parts) TakeMoved() map[int]checkpoint.CopyMark {
	moved := map[int]checkpoint.CopyMark{}
	for _, x := range p.All {
		if x.moved {
			moved[x.Number], x.moved = x.mark, false
		}
	}
	return moved
}

// PutBack notes that marks could not be stored.
func (p *Parts) PutBack(marks map[int]checkpoint.CopyMark) {
	for i := range marks {
		p.All[i].moved = true
	}
}

// Total returns the sum of the marks.
func (p *Parts) Total() (sum checkpoint.CopyMark) {
	for _, x := range p.All {
		sum.Items += x.mark.Items
		sum.Bytes += x.mark.Bytes
		sum.Letters += x.mark.Letters
	}
	sum.Done = p.AllDone()
	return sum
}

// DoneCount returns how many parts are done.
func (p *Parts) DoneCount() int { return len(p.All) - p.open }

// EmptyCount returns how many of the parts that are done had no item.
func (p *Parts) EmptyCount() (n int) {
	for _, x := range p.All {
		if x.mark.Done && x.mark.Items == 0 {
			n++
		}
	}
	return n
}

// AllDone reports whether every part is done.
func (p *Parts) AllDone() bool { return p.open == 0 }
