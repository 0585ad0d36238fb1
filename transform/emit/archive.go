package emit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Archives reports whether items that TTL deletes may become archival events. If so, an archive must be configured.
func Archives(p *ir.Program) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool { return r.OnTTL == "archive" })
}

// Archive returns the archival event of a change: nil unless DynamoDB's TTL deleted the item and the mapping archives
// it. The event's id is the same on every replay.
func Archive(p *ir.Program, d *change.Decoder, c *change.Change) (*Event, error) {
	if !c.TTL || c.Op != change.Remove {
		return nil, nil
	}
	keys, err := d.Image(c.Keys)
	if err != nil {
		return nil, err
	}
	if expiryPolicy(p, p.NewEval(), keys, c) != "archive" {
		return nil, nil
	}
	canonical, err := p.Table.Schema.Canonical(nil, keys)
	if err != nil {
		return nil, err
	}
	arn, label := cutStream(c.Feed.Stream)
	e := &Event{ID: label + "/" + c.Feed.Shard + "/" + string(c.SequenceNumber), Source: arn, Subject: string(canonical),
		Time: c.Created.Time().UTC()}
	if arn == "" {
		e.Source = p.Table.Pipeline + "/" + p.Table.Source
	}
	e.Data, err = eventData(p, d, c, canonical)
	return e, err
}

// cutStream splits arn:aws:dynamodb:…:table/Name/stream/label into the table's ARN and the label.
func cutStream(stream string) (arn, label string) {
	arn, label, ok := strings.Cut(stream, "/stream/")
	if !ok {
		return "", stream
	}
	return arn, label
}

// eventData returns the event's JSON: table, keys, item, version, times.
func eventData(p *ir.Program, d *change.Decoder, c *change.Change, canonical []byte) ([]byte, error) {
	out := change.AppendString([]byte(`{"schema":1,"table":`), p.Table.Source)
	out = append(append(out, `,"keys":`...), canonical...)
	out = append(out, `,"item":`...)
	if c.Old == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, c.Old...)
	}
	out = strconv.AppendInt(append(out, `,"version":`...), int64(c.Version), 10)
	out = strconv.AppendInt(append(out, `,"created":`...), int64(c.Created), 10)
	expiry, err := expirySeconds(p, d, c)
	if err != nil {
		return nil, err
	}
	out = append(append(out, `,"expiry":`...), expiry...)
	return append(out, '}'), nil
}

// expirySeconds returns the item's TTL attribute in epoch seconds, "null" where it is unknown or not a number.
func expirySeconds(p *ir.Program, d *change.Decoder, c *change.Change) (string, error) {
	if p.Table.TTLAttr == "" || c.Old == nil {
		return "null", nil
	}
	img, err := d.PartialImage(c.Old, func(name string) bool { return name == p.Table.TTLAttr })
	if err != nil {
		return "", fmt.Errorf("decode expired item: %w", err)
	}
	v := img.Get(p.Table.TTLAttr)
	if v == nil || v.Kind != change.KindNumber {
		return "null", nil
	}
	return change.CanonicalNumber(v.S)
}
