package checkpoint

import "slices"

// Doubt is why a gap stands although nothing is known to be lost.
type Doubt string

// DoubtUnconfirmed: the items were copied from an export, and DynamoDB could not be asked whether
// it was made with a filter. What a filter left out is in no stream.
//
// Rule 13: what DynamoDB did not confirm stays a gap, until a comparison of both sides does.
const DoubtUnconfirmed Doubt = "unconfirmed-export"

// ReasonUnconfirmed is the reason of the gap that a copy of an unconfirmed export leaves, for
// people.
const ReasonUnconfirmed = "copied from an export that DynamoDB could not be asked about: " +
	"if it was filtered, items are missing"

// Verified notes that a comparison of the whole table with Bigtable found everything equal: it
// began after the gaps that it names were in the log, and ends the doubts among them.
type Verified struct {
	Gaps []string `json:"gaps"`
}

// Doubts returns the ids of the gaps that a comparison which finds everything equal ends.
func (s *State) Doubts() (ids []string) {
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.Doubt != "" && s.BigtableDiffers(g) {
			ids = append(ids, g.ID())
		}
	}
	return ids
}

// applyVerified ends the doubts that it names. It heals no gap that lost changes: those rows were
// repaired by nothing, and other sinks may lack them.
func (s *State) applyVerified(c *Control) {
	open := s.Doubts()
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if id := g.ID(); !slices.Contains(open, id) || !slices.Contains(c.Verified.Gaps, id) {
			continue
		}
		if g.Healed == nil {
			g.Healed = map[string]Healing{}
		}
		g.Healed[SinkBigtable] = Healing{At: max(c.At, s.Date)}
	}
}
