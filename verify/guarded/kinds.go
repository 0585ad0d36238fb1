package guarded

// Kind is how the two sides differ.
type Kind string

// The kinds of a Difference. A missing or extra row counts once, whatever cells it has.
const (
	MissingRow  Kind = "missing_row"
	ExtraRow    Kind = "extra_row"
	MissingCell Kind = "missing_cell"
	ExtraCell   Kind = "extra_cell"
	Value       Kind = "value"
)

// The kinds of a difference that only the guards of a row show.
const (
	Stale       Kind = "stale"    // a guard says that the row holds an item which should not be in it
	NoGuard     Kind = "no_guard" // the row holds an item without its guard: a late change of any version would win in it
	FutureGuard Kind = "future"   // a guard at a version that has not been issued yet: no write can replace it
	Foreign     Kind = "foreign"  // a cell that no guard of its row can own
	Sealed      Kind = "sealed"   // a cell in a row with a guard that is sealed with an unknown secret
	Unowned     Kind = "unowned"  // a cell in a column that does not show to which item it belongs
	NotTaken    Kind = "refused"  // the mapping refuses the item
)
