package checkpoint

// What package listing makes of listings; it stands above this package, whose tests store what it makes.
var (
	SplitStart  func(start *Start, limit int) []*Start
	DiffListing func(s *State, b *Graph, limit int) []*Graph
)

const listingPartBytes = 256 << 10
