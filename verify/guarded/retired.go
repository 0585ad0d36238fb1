package guarded

import (
	"strings"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Retiring is a Target that lists the source tables whose replication into it has ended. Their rows
// belong to the application, and their guards may be gone.
type Retiring interface {
	// Retired returns the names of the tables, as of the last reading of rows.
	Retired() []string
}

// whyRetired is why a cell without an owner may be there in a target with retired tables; their
// names follow.
const whyRetired = "the replication of a table has ended that may have written it: "

// Retired returns why a cell that no guard of its row owns may be there although no item should
// have it: a table was retired, and no item of the given tables may have the cell. So it is not a
// ghost of these tables, and only the application can decide whether it is foreign. Otherwise it
// returns "".
func (g *Guards) Retired(row []byte, cell *bigtable.Cell) (why string) {
	target, ok := g.target.(Retiring)
	if !ok {
		return ""
	}
	names := target.Retired()
	if len(names) == 0 {
		return ""
	}
	for i := range g.tables {
		if g.tables[i].Program.MayHold(row, cell.Family, string(cell.Qualifier)) {
			return ""
		}
	}
	return whyRetired + strings.Join(names, ", ")
}
