package cutover

// ChangedSince is what decides whether a cutover compares all items.
var ChangedSince = (*Cutover).changedSince

// UnfenceRow is the last step of an undo.
var UnfenceRow = unfenceRow
