package prove

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// MayCoalesce reports whether only the last of several changes of an item matters to a row. It
// returns false if an earlier change has an effect that lasts: a kept version, a merged value, an
// archived copy, or the deletion of the whole row.
func MayCoalesce(pl *ir.Plan) bool {
	if pl.WipesOnRemoval || pl.Rule.ArchiveFamily != nil {
		return false
	}
	return !slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool {
		return e.Aggregate() || keepsRemovedSiblings(e) ||
			slices.ContainsFunc(e.Columns(), func(c ir.ColumnSet) bool { return e.KeepsVersions(c.Family) })
	})
}

// keepsRemovedSiblings reports whether an emitter with `cell_id: ts`, where the cells of several
// items (siblings) share a column and differ by their times, keeps the cell of a removed item.
func keepsRemovedSiblings(e *ir.Emitter) bool {
	return e.Time.Siblings && e.Family.History && e.Family.Removed != "delete"
}

// NeedsOldImage reports whether a rule needs the old image of an item to know what to delete.
func NeedsOldImage(r *ir.Rule) bool {
	if r.OnRemove == "tombstone" {
		return true
	}
	for i, pl := range r.Plans {
		conditional := i > 0 && (len(pl.Conditions) > 0 || pl.When != nil)
		if !pl.Row.FromKey || conditional {
			return true
		}
		for _, e := range pl.Emitters {
			if slices.ContainsFunc(e.Columns(), func(c ir.ColumnSet) bool { return columnNeedsOldImage(pl, e, c.Family) }) {
				return true
			}
		}
	}
	return false
}

// columnNeedsOldImage reports whether only the old image shows which columns of a family must be
// deleted or emptied.
func columnNeedsOldImage(pl *ir.Plan, e *ir.Emitter, f *ir.FamilyRule) bool {
	unknown := !e.FromKey && !e.Aggregate() && (!pl.Exclusive || slices.Contains(pl.History, f.Name))
	return unknown || e.KeepsVersions(f) && f.Removed == "empty"
}

// MustReadToResync reports whether what a resync writes to a row depends on what the row holds: the
// item's earlier columns are not known from its key, or a family keeps versions or ages, where
// writing a cell again would push an older version out or begin its age anew. Aggregates need no
// reading: max, min and hll take the same value twice without harm.
func MustReadToResync(pl *ir.Plan) bool {
	return pl.Class == ir.ClassD || slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool {
		ages := !e.Timed || e.Time.Missing == "version"
		return !e.Aggregate() && slices.ContainsFunc(e.Columns(), func(c ir.ColumnSet) bool {
			return e.KeepsVersions(c.Family) || ages && c.Family.MaxAge > 0
		})
	})
}

// CheckImages refuses a stream that does not carry the images that the rows' classes need.
func CheckImages(d *ir.Draft) {
	const hint = "enable the stream with NEW_AND_OLD_IMAGES"
	switch d.Program.Table.View {
	case "", "NEW_AND_OLD_IMAGES":
		return
	case "NEW_IMAGE":
	default:
		d.Problems.Errorf(d.Mapping.At, "view", hint, "the stream's view type is %s: it has no new images",
			d.Program.Table.View)
		return
	}
	for _, r := range d.Program.Rules {
		for _, pl := range r.Plans {
			if !pl.Exclusive || r.NeedOld || !d.Program.KeyDecidesRule {
				d.Problems.Errorf(*pl.Src, "view", hint, "the stream has no old images, but %s is of class %s and needs them: %s",
					pl.Name, pl.Class.Named(), pl.Why)
			}
		}
		if strings.HasPrefix(r.OnTTL, "archive") {
			d.Problems.Errorf(r.Src.At, "view", hint, "expired items cannot be archived: the stream has no old images")
		}
	}
}
