package checkpoint

import "github.com/tailrace-cdc/replicator/change"

// Body is the body of an entry. Each kind declares what it does to rows apart from the changes in
// the log, so a new kind without that declaration does not compile.
type Body interface {
	changesRows() RowsReason
}

// RowsReason is why a comparison of both sides that began before an entry does not show what the
// rows hold behind it, although all changes that the log has got since are compared as well; ""
// where it does.
type RowsReason string

// What entries do to rows apart from the changes in the log.
const (
	RowsByChanges     RowsReason = ""              // nothing: rows follow the changes in the log
	RowsByStream      RowsReason = "stream"        // another stream is read: what was written between the two is in no log
	RowsByGap         RowsReason = "gap"           // changes were lost: the items that they changed are in no log
	RowsByCopy        RowsReason = "copy"          // items were read from the table itself and written
	RowsByResync      RowsReason = "resync"        // rows were compared with the table and written again
	RowsByMapping     RowsReason = "mapping"       // another mapping gives the same items other cells
	RowsByCopyOrder   RowsReason = "copy_order"    // a copy was told to go on, to pause or to end
	RowsByApplication RowsReason = "application"   // a fence was taken away: behind it the application may have written
	RowsUnknown       RowsReason = "unknown_entry" // no build that wrote it is known
)

// ChangesRows is the one judge of what an entry's body does to rows apart from the changes in the
// log. It is total: a body of an unknown type may have done anything.
//
// Rule 14: only this function decides whether an entry makes a kept comparison useless.
func ChangesRows(body any) RowsReason {
	if b, ok := body.(Body); ok {
		return b.changesRows()
	}
	return RowsUnknown
}

func (*Claim) changesRows() RowsReason    { return RowsByChanges } // a new life has another log
func (*Release) changesRows() RowsReason  { return RowsByChanges }
func (*Start) changesRows() RowsReason    { return RowsByStream }
func (*Frame) changesRows() RowsReason    { return RowsByChanges }
func (*Beat) changesRows() RowsReason     { return RowsByChanges }
func (*Marks) changesRows() RowsReason    { return RowsByChanges }
func (*Gap) changesRows() RowsReason      { return RowsByGap }
func (*Snapshot) changesRows() RowsReason { return RowsByChanges }

func (*Copy) changesRows() RowsReason      { return RowsByCopy }
func (*CopyMarks) changesRows() RowsReason { return RowsByCopy }

// changesRows: a shard that the service no longer has may have been trimmed before it was
// read to its end. The fold stores such a gap without an entry of its own.
func (b *Graph) changesRows() RowsReason {
	if len(b.Gone) > 0 {
		return RowsByGap
	}
	return RowsByChanges
}

// changesRows: what was healed from exports is in the archive alone.
func (b *Healed) changesRows() RowsReason {
	if len(b.Exports) > 0 {
		return RowsByChanges
	}
	return RowsByResync
}

// changesRows judges each member of a control: one that is not named in members does not compile.
//
// A fence changes no rows, and the cutover that raised it rests on a comparison from before it. Its
// undo does: behind the fence the rows may have been the application's. To resume accepts gaps that
// are entries of their own; a comparison that begins while one waits is not kept for later.
func (c *Control) changesRows() RowsReason {
	members := struct {
		Pause     *bool         // none
		Halt      *Halt         // none
		Clear     bool          // none
		ClearSink string        // none
		Resume    bool          // none, see above
		Waive     *Waive        // none: the gap is an entry
		Copy      *CopyOrder    // RowsByCopyOrder
		Resync    *ResyncOrder  // RowsByResync
		Accept    *Accept       // RowsByMapping
		Fence     *FenceOrder   // RowsByApplication for an undo
		Certify   *Certify      // none: a certificate issued again says that it assumes that only the replicator wrote
		Verified  *Verified     // none: it says what a comparison found
		By        string        // none
		At        change.Millis // none
	}(*c)
	switch {
	case members.Resync != nil:
		return RowsByResync
	case members.Accept != nil:
		return RowsByMapping
	case members.Copy != nil:
		return RowsByCopyOrder
	case members.Fence != nil && members.Fence.Undo:
		return RowsByApplication
	}
	return RowsByChanges
}
