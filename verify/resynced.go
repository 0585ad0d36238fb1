package verify

import (
	"fmt"

	"github.com/dustin/go-humanize/english"
)

// Resynced is what a resync of whole tables did. Open is what is not proven equal afterwards.
type Resynced struct {
	Counts Counts `json:"full"` // of the comparison

	Settled   int64 `json:"settled"`      // items that may differ, of which it is known by now
	Different int64 `json:"different"`    // items that settled as different, or of which a row was missing
	Repaired  int64 `json:"repaired"`     // of them, those that settled as equal afterwards
	Written   int64 `json:"written"`      // rows
	Left      int64 `json:"left"`         // rows that their item has left
	Equal     int64 `json:"equal"`        // items of the source that are equal, repaired ones included
	Busy      int64 `json:"busy"`         // items that changed all the time, and were resynced because of that
	ByLog     int64 `json:"equal_by_log"` // of Equal: items that changed all the time, and were what the log says
	Hot       int64 `json:"hot"`
	Letters   int64 `json:"letters"`
	Unproven  int64 `json:"unproven"` // items, and cells beside a guard that cannot be read
	Unowned   int64 `json:"unowned"`  // cells whose owner cannot be told, because of their columns
	Refused   int64 `json:"refused"`
	Kept      int64 `json:"kept"` // cells that may remain without their item
	Foreign   int64 `json:"foreign"`

	Open      []Open `json:"open"`       // the first of them
	OpenCount int64  `json:"open_count"` // how many there are
	OpenFile  string `json:"open_file"`  // has the keys of up to a million; Findings.Remove removes it
}

// Healed reports whether every difference was repaired and settled equal, and if not, why the
// tables are not healed. Cells that are kept never stand in the way; foreign ones do unless they
// are accepted.
func (r *Resynced) Healed(acceptForeign bool) (bool, string) {
	switch open := r.Different - r.Repaired - r.Hot - r.Letters; {
	case r.Hot > 0:
		return false, fmt.Sprintf("%s hot: newer writes keep differences for a while",
			english.Plural(int(r.Hot), "item is", "items are"))
	case open > 0:
		return false, english.Plural(int(open), "item still differs", "items still differ") + " after the repair"
	case r.Unproven > 0:
		return false, english.Plural(int(r.Unproven), "item or cell is", "items or cells are") + " unproven"
	case r.Unowned > 0:
		return false, english.Plural(int(r.Unowned), "cell does not show its owner", "cells do not show their owner")
	case r.Refused > 0:
		return false, "the mapping refuses " + english.Plural(int(r.Refused), "item", "")
	case r.Letters > 0:
		return false, english.Plural(int(r.Letters), "item is refused, or stands", "items are refused, or stand") +
			" behind a dead letter that is: see `replicator dlq list`"
	case r.Foreign > 0 && !acceptForeign:
		return false, english.Plural(int(r.Foreign), "cell is foreign: no guard of its row can own it",
			"cells are foreign: no guard of their row can own them")
	}
	return true, ""
}
