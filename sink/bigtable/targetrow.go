package bigtable

import (
	"maps"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// targetFormat is the format of a target's row, and the highest that this build reads.
const targetFormat = 1

// targetRow names the pipeline that writes to a target table. It is written once, and again when
// another pipeline adopts the target. Two pipelines must not write to one table, because their rows
// would be mixed without an error.
type targetRow struct {
	Format   int       `json:"format"` // Rule 11: Everything stored carries a format number.
	Target   string    `json:"target"`
	Pipeline string    `json:"pipeline"`
	Since    time.Time `json:"since"` // by the clock of the machine that wrote it

	// An adopted target has the following members.
	From  string         `json:"from,omitempty"`  // the pipeline before; "": none had claimed the target
	Floor change.Version `json:"floor,omitempty"` // the highest guard that was found: new versions must be above it

	// Retired are source tables that are no longer replicated, by name.
	Retired map[string]Retired `json:"retired,omitempty"`

	// Sole is the source table that the target is for; "": several may share it.
	Sole string `json:"sole,omitempty"`
}

// Retired is a source table that is no longer replicated into a target: the rows may belong to the
// application.
type Retired struct {
	At    time.Time      `json:"at"`    // by the clock of the machine that wrote it
	Floor change.Version `json:"floor"` // no version that the table was given is above it
}

// Clone returns an independent copy of the row.
func (r targetRow) Clone() targetRow {
	retired := map[string]Retired{}
	maps.Copy(retired, r.Retired)
	r.Retired = retired
	return r
}

// Retire notes that the replication of a source table has ended; false if that is noted already.
func (r *targetRow) Retire(table string, as Retired) (changes bool) {
	_, done := r.Retired[table]
	r.Retired[table] = as
	return !done
}

// Unretire takes the note of Retire away; false if there is none.
func (r *targetRow) Unretire(table string) (changes bool) {
	_, there := r.Retired[table]
	delete(r.Retired, table)
	return there
}

// ClaimSole reserves the target for one source table, unless it holds another one that is still
// replicated.
func (r *targetRow) ClaimSole(table string) (changes bool) {
	_, ended := r.Retired[r.Sole]
	if r.Sole == table || r.Sole != "" && !ended {
		return false
	}
	r.Sole = table
	return true
}
