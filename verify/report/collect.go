package report

import (
	"bytes"
)

const (
	shownItems = 100 // differences of items
	shownCells = 20  // cells without an item
)

// Collector is an io.Writer that takes the lines of a file of differences and keeps the first of
// them. The lines are counted as in the file.
type Collector struct {
	begun []byte // a line whose end was not written yet
	lines int64

	items, cells []numbered
}

// numbered is a difference with its line in the file.
type numbered struct {
	line int64
	*Difference
}

// Write takes some bytes of the file.
func (c *Collector) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		at := bytes.IndexByte(rest, '\n')
		if at < 0 {
			c.begun = append(c.begun, rest...)
			break
		}
		if err := c.add(append(c.begun, rest[:at]...)); err != nil {
			return 0, err
		}
		c.begun, rest = c.begun[:0], rest[at+1:]
	}
	return len(p), nil
}

func (c *Collector) add(line []byte) error {
	c.lines++
	if len(c.items) >= shownItems && len(c.cells) >= shownCells {
		return nil
	}
	for d, err := range Differences(bytes.NewReader(line)) {
		switch {
		case err != nil:
			return err
		case d.Key != nil && len(c.items) < shownItems:
			c.items = append(c.items, numbered{c.lines, d})
		case d.Key == nil && len(c.cells) < shownCells:
			c.cells = append(c.cells, numbered{c.lines, d})
		}
	}
	return nil
}
