package cutover

// ChangedSince is what decides whether a cutover compares all items.
var ChangedSince = (*Cutover).changedSince
