package distributed

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
)

// Format of the plan and of the findings. Rule 11: a newer one is refused.
const Format = 1

// Plan is what is compared.
type Plan struct {
	Format int    `json:"format"`
	ID     string `json:"id"` // no two comparisons have the same

	Pipeline string `json:"pipeline"`
	Project  string `json:"project"`
	Instance string `json:"instance"`
	Target   string `json:"target"`            // short name of the target table
	Profile  string `json:"profile,omitempty"` // app profile of the readings; "": the instance's default

	// Tables are all source tables of the target, in the order in which they are compiled. Findings
	// name them by their index.
	Tables []Table `json:"tables"`

	// Now is the service's clock when the plan was made, and Lead how far above it versions may be:
	// a guard beyond is a difference. Rows that are written meanwhile are too, and are settled.
	Now  change.Millis `json:"now"`
	Lead change.Millis `json:"lead"`

	// Splits are the first rows of all ranges but the first, in order.
	Splits [][]byte `json:"splits"`
}

// Table is one source table.
type Table struct {
	delegation.Mapping
	TableID    string                `json:"table_id"` // DynamoDB's TableId
	Export     delegation.Export     `json:"export"`
	Heartbeats delegation.Heartbeats `json:"heartbeats,omitzero"`
}

// Ranges returns how many ranges there are.
func (p *Plan) Ranges() int { return len(p.Splits) + 1 }

// RangeOf returns the range of a row.
func (p *Plan) RangeOf(row []byte) int {
	i, found := slices.BinarySearchFunc(p.Splits, row, slices.Compare)
	if found {
		i++ // a split is the first row of its range
	}
	return i
}

// Bounds returns the first row of a range, and the first one behind it; "" is the end of the table.
func (p *Plan) Bounds(n int) (start, end string) {
	if n > 0 {
		start = string(p.Splits[n-1])
	}
	if n < len(p.Splits) {
		end = string(p.Splits[n])
	}
	return start, end
}

// Files returns how many files of exports there are.
func (p *Plan) Files() (n int) {
	for i := range p.Tables {
		n += p.Tables[i].Export.Files
	}
	return n
}

// FileOf returns the table of a file, and the file's number in the table's export. Files count
// through all tables.
func (p *Plan) FileOf(n int) (table, file int) {
	for i := range p.Tables {
		if n < p.Tables[i].Export.Files {
			return i, n
		}
		n -= p.Tables[i].Export.Files
	}
	return -1, 0
}

// decodePlan reads a plan.
func decodePlan(text []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	if p.Format < 1 || p.Format > Format { // Rule 11
		return nil, fmt.Errorf("the plan has format %d, this build reads %d", p.Format, Format)
	}
	if len(p.Tables) == 0 || !slices.IsSortedFunc(p.Splits, slices.Compare[[]byte]) {
		return nil, fmt.Errorf("plan %s is damaged", p.ID)
	}
	return p, nil
}
