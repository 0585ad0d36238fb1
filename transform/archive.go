package transform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// policy is what the mapping does when DynamoDB's TTL deletes an item: delete, keep, archive.
func (p *Program) policy(x *Eval, keys change.Image, c *change.Change) string {
	r, err := p.ruleOfKey(x, keys)
	if err == nil && r == nil && !p.byKey && c.Old != nil {
		var d change.Decoder
		img, derr := d.PartialImage(c.Old, p.wants)
		if derr == nil {
			x.Scope.Image = img
			r, err = p.pick(x)
		}
	}
	if err == nil && r != nil {
		return r.onTTL
	}
	return p.onTTL()
}

func (p *Program) onTTL() string {
	if p.table.OnTTLExpiry == "" {
		return "delete"
	}
	return p.table.OnTTLExpiry
}

// Archives says whether items that TTL deletes may become archival events, which then need a place.
func (p *Program) Archives() bool {
	return slices.ContainsFunc(p.rules, func(r *rule) bool { return r.onTTL == "archive" })
}

// Archive returns the archival event of a change: nil unless DynamoDB's TTL deleted the item and the
// mapping archives it. The event's id is the same on every replay.
func (p *Program) Archive(d *change.Decoder, c *change.Change) (*Event, error) {
	if !c.TTL || c.Op != change.Remove {
		return nil, nil
	}
	keys, err := d.Image(c.Keys)
	if err != nil {
		return nil, err
	}
	if p.policy(p.NewEval(), keys, c) != "archive" {
		return nil, nil
	}
	canonical, err := p.table.Schema.Canonical(nil, keys)
	if err != nil {
		return nil, err
	}
	arn, label := cutStream(c.Feed.Stream)
	e := &Event{ID: label + "/" + c.Feed.Shard + "/" + c.SequenceNumber, Source: arn, Subject: string(canonical), Time: time.UnixMilli(c.Created).UTC()}
	if arn == "" {
		e.Source = p.table.Pipeline + "/" + p.table.Source
	}
	e.Data, err = p.eventData(d, c, canonical)
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

func (p *Program) eventData(d *change.Decoder, c *change.Change, canonical []byte) ([]byte, error) {
	out := change.AppendString([]byte(`{"schema":1,"table":`), p.table.Source)
	out = append(append(out, `,"keys":`...), canonical...)
	out = append(out, `,"item":`...)
	if c.Old == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, c.Old...)
	}
	out = strconv.AppendInt(append(out, `,"version":`...), c.Version, 10)
	out = strconv.AppendInt(append(out, `,"created":`...), c.Created, 10)
	expiry, err := p.expiry(d, c)
	if err != nil {
		return nil, err
	}
	out = append(append(out, `,"expiry":`...), expiry...)
	return append(out, '}'), nil
}

// expiry is the item's TTL attribute in epoch seconds, null where it is unknown or of another type.
func (p *Program) expiry(d *change.Decoder, c *change.Change) (string, error) {
	if p.table.TTLAttr == "" || c.Old == nil {
		return "null", nil
	}
	img, err := d.PartialImage(c.Old, func(name string) bool { return name == p.table.TTLAttr })
	if err != nil {
		return "", fmt.Errorf("decode expired item: %w", err)
	}
	v := img.Get(p.table.TTLAttr)
	if v == nil || v.Kind != change.KindNumber {
		return "null", nil
	}
	return change.CanonicalNumber(v.S)
}
