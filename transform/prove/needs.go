package prove

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// MayCoalesce says whether only the last of several changes of an item matters to a row: not where every one leaves
// something behind, a version, a merged value, an archived copy, or an emptied row.
func MayCoalesce(pl *ir.Plan) bool {
	return !pl.WipesOnRemoval && pl.Rule.ArchiveFamily == nil && !slices.ContainsFunc(pl.Emitters, func(e *ir.Emitter) bool {
		return e.Aggregate() || cellsOutliveItem(e) || slices.ContainsFunc(e.Columns(), func(o ir.ColumnSet) bool { return e.KeepsVersions(o.Family) })
	})
}

// cellsOutliveItem says whether cells that their times tell apart stay when their item goes.
func cellsOutliveItem(e *ir.Emitter) bool {
	return e.Time.Siblings && e.Family.History && e.Family.Removed != "delete"
}

// NeedsOldImage says whether a rule needs the old image to know what to delete.
func NeedsOldImage(r *ir.Rule) bool {
	if r.OnRemove == "tombstone" {
		return true
	}
	for i, pl := range r.Plans {
		if !pl.Row.FromKey || (i > 0 && (len(pl.Conditions) > 0 || pl.When != nil)) {
			return true
		}
		for _, e := range pl.Emitters {
			for _, o := range e.Columns() {
				if !e.FromKey && !e.Aggregate() && (!pl.Exclusive || slices.Contains(pl.History, o.Family.Name)) {
					return true
				}
				if e.KeepsVersions(o.Family) && o.Family.Removed == "empty" {
					return true
				}
			}
		}
	}
	return false
}

func OldImagesArrive(c *ir.Draft) {
	at := c.Mapping.At
	switch c.Program.Table.View {
	case "", "NEW_AND_OLD_IMAGES":
		return
	case "NEW_IMAGE":
		for _, r := range c.Program.Rules {
			for _, pl := range r.Plans {
				if !pl.Exclusive || r.NeedOld || !c.Program.KeyDecidesRule {
					c.Problems.Errorf(*pl.Src, "view", "enable the stream with NEW_AND_OLD_IMAGES",
						"the stream has no old images, but %s is of class %s and needs them: %s", pl.Name, pl.Class, pl.Why)
				}
			}
			if strings.HasPrefix(r.OnTTL, "archive") {
				c.Problems.Errorf(r.Src.At, "view", "enable the stream with NEW_AND_OLD_IMAGES", "expired items cannot be archived: the stream has no old images")
			}
		}
	default:
		c.Problems.Errorf(at, "view", "enable the stream with NEW_AND_OLD_IMAGES", "the stream's view type is %s: it has no new images", c.Program.Table.View)
	}
}
