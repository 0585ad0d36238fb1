package propose

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform"
)

// places records which item wrote which place: a whole row of class R (replace-row), in other rows
// a column, together with the cell time if the mapping sets it. It stores hashes, since a sample
// may be large.
type places struct {
	seed   maphash.Seed
	owners map[uint64]uint64 // by place: the item, or several
	shared map[string]int    // by family: places that several items wrote; "" for rows of class R
}

// add records the places that an item's row or its cells write.
func (p *places) add(row *transform.Row, item uint64) {
	if row.Class == transform.ClassR {
		p.take(p.place(row.Key, "", nil, nil), "", item)
		return
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Aggregate {
			continue // several items merge into such a cell
		}
		var at []byte
		if c.Mapped {
			at = binary.BigEndian.AppendUint64([]byte{1}, uint64(c.Time))
		}
		p.take(p.place(row.Key, c.Family, c.Qualifier, at), c.Family, item)
	}
}

// several is the owner of a place that more than one item wrote.
const several = 0

func (p *places) take(place uint64, family string, item uint64) {
	switch owner, known := p.owners[place]; {
	case !known:
		p.owners[place] = item
	case owner != item && owner != several:
		p.owners[place] = several
		p.shared[family]++
	}
}

func (p *places) place(row []byte, family string, qualifier, at []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, part := range [][]byte{row, []byte(family), qualifier, at} {
		var n [binary.MaxVarintLen64]byte
		_, _ = h.Write(n[:binary.PutUvarint(n[:], uint64(len(part)))]) // never fails
		_, _ = h.Write(part)
	}
	return h.Sum64()
}

// findings reports the places that several items wrote; acknowledged is true if the mapping allows
// shared cells.
func (p *places) findings(ps *problem.Collector, acknowledged bool) {
	const report = "report this as a bug: the compiler proved that it cannot happen"
	at := problem.Text{Path: "sample"}
	for _, family := range slices.Sorted(maps.Keys(p.shared)) {
		switch n := p.shared[family]; {
		case family == "":
			ps.Errorf(at, "collision", report, "%d rows of class R (replace-row) belong to several items", n)
		case acknowledged:
			ps.Warnf(at, "collision", "distinguish the items in the row or the column, unless the last one should win",
				"%d cells of family %s belong to several items of the sample: the last one written hides the others, and a "+
					"removal deletes it for all", n, family)
		default:
			ps.Errorf(at, "collision", report, "%d cells of family %s belong to several items of the sample", n, family)
		}
	}
}
