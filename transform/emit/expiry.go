package emit

import (
	"errors"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// expiryPolicy returns the mapping's policy (on_ttl_expiry) for an item that DynamoDB's TTL
// deleted: delete, keep or archive.
func expiryPolicy(p *ir.Program, x *ir.Eval, keys change.Image, c *change.Change) string {
	r, err := ruleOfKey(p, x, keys)
	if err == nil && r == nil && !p.KeyDecidesRule && c.Old != nil {
		var d change.Decoder
		img, derr := d.PartialImage(c.Old, p.Wanted)
		if derr == nil {
			x.Scope.Image = img
			r, err = p.RuleOf(x)
		}
	}
	if err == nil && r != nil {
		return r.OnTTL
	}
	return p.DefaultOnTTL()
}

// RuleOf returns the name of the rule that takes an item, given its key and its newest image or
// nil; "" where none does or it cannot be told.
func RuleOf(p *ir.Program, d *change.Decoder, keys, image []byte) string {
	x := p.NewEval()
	if !p.KeyDecidesRule {
		keys = image
	}
	img, err := d.PartialImage(keys, p.Wanted)
	if keys == nil || err != nil {
		return ""
	}
	x.Scope.Image = img
	r, err := p.RuleOf(x)
	if err != nil || r == nil {
		return ""
	}
	return r.Name
}

// ruleOfKey returns the item's rule where the key alone decides it; nil where it does not, or where
// no rule takes the item.
func ruleOfKey(p *ir.Program, x *ir.Eval, keys change.Image) (*ir.Rule, error) {
	if !p.KeyDecidesRule {
		return nil, nil
	}
	x.Scope.Image = keys
	return p.RuleOf(x)
}

// ignoreRefusal drops an error that is a refusal.
func ignoreRefusal(err error) error {
	if refused := (*tmpl.Refusal)(nil); errors.As(err, &refused) {
		return nil
	}
	return err
}

// A bare row is a row of an item without visible cells of the item: it has none there, or all have
// aged away. If TTL deletes an item that the mapping keeps (on_ttl_expiry: keep), nothing visible
// to a reader changes. A bare row holds nothing to keep, so its guard becomes a tombstone.
// Otherwise it would stay for ever, one row for each item that expires.

// bare reports whether none of an item's cells in a row are visible at a time.
func bare(cells []ir.Emitted, now int64) bool {
	return !slices.ContainsFunc(cells, func(c ir.Emitted) bool {
		return c.By.Aggregate() || !c.Mapped || !agedAt(c.Family, c.Time, now)
	})
}

// agedAt reports whether a cell of a time has aged away at another time.
func agedAt(f *ir.FamilyRule, at, now int64) bool {
	return f.Ages() && at+f.MaxAge.Milliseconds() <= now
}
