package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
)

// resume notes that the table had no archive until an hour. What waited for objects when it was
// turned off still does.
func (s *State) resume(c *Claim, hour layout.Hour) {
	if c.Objects {
		s.ObjectsSince = hour
	}
	if c.Subject {
		s.SubjectSince = hour
	}
	s.Lost = append(s.Lost, Lost{
		ID: fmt.Sprintf("archive-off-%d", c.Epoch), Why: "the table had no archive", Since: s.Closed, Until: hour,
	})
}

// StreamLost returns the id of a loss that the owner of an epoch has found.
func StreamLost(epoch uint64) string { return fmt.Sprintf("archive-stream-lost-%d", epoch) }

// LogLost returns the id of a lost log that the owner of an epoch has found.
func LogLost(epoch uint64) string { return fmt.Sprintf("archive-log-lost-%d", epoch) }

// noteLoss notes that the stream lost entries: it does not know an object. What they counted is not
// known from that hour, and from the last one that is closed, until the owner began that found out.
func (s *State) noteLoss(hour layout.Hour) {
	id := StreamLost(s.Claim.Epoch)
	l := Lost{ID: id, Why: "the archive's stream did not know objects in the bucket", Since: min(hour, s.Closed),
		Until: max(hour, layout.HourOf(s.Claim.Date.Time()))}
	at := slices.IndexFunc(s.Lost, func(l Lost) bool { return l.ID == id })
	if at < 0 {
		s.Lost = append(s.Lost, l)
		return
	}
	s.Lost[at].Since, s.Lost[at].Until = min(s.Lost[at].Since, l.Since), max(s.Lost[at].Until, l.Until)
}

// applyPlaced notes where the objects are. In another place nothing is known of the hours before,
// and of those that are open the objects that are there already stay in the old place, where no
// manifest names them any more.
func (s *State) applyPlaced(b *Placed) {
	if s.Place = b.Place; !b.Anew {
		return
	}
	s.Head, s.Objects, s.Columns = manifest.Head{}, nil, nil
	s.Lost = append(s.Lost, Lost{
		ID: fmt.Sprintf("archive-moved-%d", s.Claim.Epoch), Why: "objects are in the place that archive.url named before",
		Until: layout.HourOf(s.Claim.Date.Time()),
	})
}

// applyColumns notes columns.
func (s *State) applyColumns(b *ColumnsAdded) {
	if s.Columns == nil {
		s.Columns = map[string]Column{}
	}
	maps.Copy(s.Columns, b.Columns)
}
