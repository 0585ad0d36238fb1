package propose

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// places remembers which item wrote what: a row of class R as a whole, in other rows a column, and the time of a cell
// where the mapping gives it. They are hashes: a sample may be large, and its keys are not kept.
type places struct {
	seed   maphash.Seed
	owners map[uint64]uint64 // place → item, or several
	taken  map[string]int    // places that several items wrote, by family; "" are rows of class R
}

func (p *places) add(row *transform.Row, item uint64) {
	if row.Class == transform.ClassR {
		p.take(p.place(row.Key, "", nil, nil), "", item)
		return
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Aggregate {
			continue // what several items merge is nobody's
		}
		var at []byte
		if c.Mapped {
			at = binary.BigEndian.AppendUint64([]byte{1}, uint64(c.Time))
		}
		p.take(p.place(row.Key, c.Family, c.Qualifier, at), c.Family, item)
	}
}

// several stands for the owners of a place where there are more than one.
const several = 0

func (p *places) take(place uint64, family string, item uint64) {
	switch owner, known := p.owners[place]; {
	case !known:
		p.owners[place] = item
	case owner != item && owner != several:
		p.owners[place] = several
		p.taken[family]++
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

func (p *places) findings(ps *lang.Problems, acknowledged bool) {
	const report = "report this: the compiler proved that it cannot be"
	at := lang.Text{Path: "sample"}
	for _, family := range slices.Sorted(maps.Keys(p.taken)) {
		switch n := p.taken[family]; {
		case family == "":
			ps.Errorf(at, "collision", report, "%d rows of class R belong to several items", n)
		case acknowledged: // it may be meant
			ps.Warnf(at, "collision", "tell the items apart in the row or the column, unless the last one shall win",
				"%d cells of family %s belong to several items of the sample: the last one written hides the others, and a "+
					"removal takes it from all", n, family)
		default:
			ps.Errorf(at, "collision", report, "%d cells of family %s belong to several items of the sample", n, family)
		}
	}
}
