package emit

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Archives reports whether deleted items may become archival events. If so, an archive must be
// configured.
func Archives(p *ir.Program) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool { return r.OnTTL == "archive" })
}

// Archive returns the archival event of a change: nil unless it deleted an item that the mapping
// archives. Its class is the cause of the deletion; the caller selects the events to keep.
func Archive(p *ir.Program, d *change.Decoder, c *change.Change) (*Event, error) {
	if c.Op != change.Remove {
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
	e := &Event{
		Table: p.Table.Source, Subject: string(canonical), Shard: c.Feed.Shard, Sequence: c.SequenceNumber,
		Version: c.Version, Created: c.Created, Item: c.Old,
	}
	if e.Source, e.Stream = cutStream(c.Feed.Stream); e.Source == "" {
		e.Source = p.Table.Pipeline + "/" + p.Table.Source
	}
	if e.Expiry, err = expirySeconds(p, d, c); err != nil {
		return nil, err
	}
	e.Class = classOf(c, e.Expiry)
	return e, nil
}

// classOf returns the cause of a deletion. A deletion by TTL in one region's replica of a global
// table arrives in the other replicas without an identity, like a deletion by a user. It is
// recognized by the item's expiry.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
func classOf(c *change.Change, expiry string) Class {
	if c.TTL {
		return ClassTTL
	}
	if change.HadExpired(expiry, c.Created) {
		return ClassInferred
	}
	return ClassUser
}

// expirySeconds returns the item's TTL attribute in epoch seconds, "" where it is unknown or not a
// number.
func expirySeconds(p *ir.Program, d *change.Decoder, c *change.Change) (string, error) {
	if p.Table.TTLAttr == "" || c.Old == nil {
		return "", nil
	}
	img, err := d.PartialImage(c.Old, func(name string) bool { return name == p.Table.TTLAttr })
	if err != nil {
		return "", fmt.Errorf("decode expired item: %w", err)
	}
	v := img.Get(p.Table.TTLAttr)
	if v == nil || v.Kind != change.KindNumber {
		return "", nil
	}
	return change.CanonicalNumber(v.S)
}
