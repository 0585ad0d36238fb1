package mappingtest

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// at is the version of the change under test. Cells at this time have no time in a line: it is that
// of the change.
const at = change.Version(1000)

// outcome returns what a program makes of a change, as sorted lines in the notation of the mapping documentation, and
// the rule that took it:
//
//	row | family:qualifier = value
//	row | family:qualifier@time = value   a cell whose time the mapping chooses, in ms
//	row | left                            the item was in this row before, and is not any more
//	archived | key
//	dead letter | code
//	dropped                               with the rows that the item has left
func outcome(p *transform.Program, c *Case) (lines []string, rule string, err error) {
	ch, err := changeOf(p, c)
	if err != nil {
		return nil, "", err
	}
	steps, err := p.ExplainChange(ch)
	if err != nil {
		return nil, "", err
	}
	if steps.Code != "" {
		return []string{"dead letter | " + steps.Code}, steps.Rule, nil
	}
	if steps.Drop {
		lines = append(lines, "dropped")
	}
	for i := range steps.Rows {
		lines = append(lines, rowLines(&steps.Rows[i])...)
	}
	event, err := p.Archive(new(change.Decoder), ch)
	if err != nil {
		return nil, "", err
	}
	if event != nil {
		lines = append(lines, "archived | "+event.Subject)
	}
	slices.Sort(lines)
	return lines, steps.Rule, nil
}

// rowLines returns the lines of a row.
func rowLines(row *transform.StepRow) (lines []string) {
	key := transform.Readable([]byte(row.Row))
	for _, c := range row.Cells {
		time := ""
		if c.Mapped {
			time = fmt.Sprintf("@%d", *c.TS)
		}
		line := fmt.Sprintf("%s | %s:%s%s =", key, c.Family, c.Qualifier, time)
		if c.Value != "" {
			line += " " + c.Value
		}
		lines = append(lines, line)
	}
	if row.Left {
		lines = append(lines, key+" | left")
	}
	return lines
}

// changeOf returns the change of a test.
func changeOf(p *transform.Program, c *Case) (*change.Change, error) {
	ch := &change.Change{
		Op: change.Modify, Version: at, Created: change.Millis(at), SequenceNumber: "1",
		TTL: c.Expired, New: c.Item, Old: c.Was,
		Feed: change.Feed{Stream: "arn:aws:dynamodb:eu-west-1:123456789012:table/Table/stream/2026-01-01T00:00:00.000",
			Shard: "shard"},
	}
	item := c.Item
	switch {
	case c.Was == nil:
		ch.Op = change.Insert
	case c.Item == nil:
		ch.Op, item = change.Remove, c.Was
	}
	img, err := new(change.Decoder).Image(item)
	if err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	schema := p.Table().Schema
	ch.Keys, err = schema.Canonical(nil, img)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if c.Item != nil && c.Was != nil {
		was, err := new(change.Decoder).Image(c.Was)
		if err != nil {
			return nil, fmt.Errorf("read was: %w", err)
		}
		before, err := schema.Canonical(nil, was)
		if err != nil || string(before) != string(ch.Keys) {
			return nil, fmt.Errorf("item and was are not the same item: %s and %s", ch.Keys, before)
		}
	}
	return ch, nil
}
