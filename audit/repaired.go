package audit

import (
	"time"

	"github.com/tailrace-cdc/replicator/control"
)

// Repaired is what a repair did, or with DryRun would look at.
type Repaired struct {
	Schema  int                `json:"schema"` // set by the command
	DryRun  bool               `json:"dry_run"`
	Tables  []*RepairedTable   `json:"tables"`
	Foreign []*RepairedForeign `json:"foreign"` // by target
}

// RepairedTable is what was repaired of one source table. After a repair, Repaired, Hot, Different,
// Refused and Unproven add up to Items.
type RepairedTable struct {
	Source string           `json:"source"`
	Target string           `json:"target"`
	Items  int64            `json:"items"`
	Rows   int64            `json:"rows"`            // that the differences name
	Kinds  map[string]int64 `json:"kinds,omitempty"` // how many items have a kind of difference; an item may have several

	// Whole says that all items of the table are compared; Items is DynamoDB's estimate before
	// that.
	Whole bool     `json:"whole,omitempty"`
	Gaps  []string `json:"gaps,omitempty"` // ids of those that are healed by it

	Requests []string `json:"requests,omitempty"` // asked for, and not waited for
	// Asked is what became of the last request for items, before they were compared again.
	Asked *control.RequestTotal `json:"-"`

	Equal     int64     `json:"equal"`              // items that were equal already; of a whole table those that are
	Written   int64     `json:"written"`            // items of which a row was written
	Left      int64     `json:"left"`               // items that were taken out of a row
	Repaired  int64     `json:"repaired"`           // items that are equal now; 0 where they were not compared
	Hot       int64     `json:"hot"`                // items with a newer write that keeps a difference
	HotUntil  time.Time `json:"hot_until,omitzero"` // when all of them can be repaired
	Different int64     `json:"different"`
	Refused   int64     `json:"refused"`  // by the mapping or Bigtable: they are dead letters
	Unproven  int64     `json:"unproven"` // they change all the time, and the log does not prove them
}

// add adds what the owner did, or was asked for.
func (t *RepairedTable) add(done *control.RequestTotal) {
	t.Written, t.Equal, t.Left = t.Written+done.Written, t.Equal+done.Equal, t.Left+done.Left
	t.Asked = done
}

// RepairedForeign is what became of the cells of one target that belong to no item.
type RepairedForeign struct {
	Target  string         `json:"target"`
	Columns int64          `json:"columns"` // that the differences name
	Deleted int64          `json:"deleted"`
	Left    map[string]int `json:"left,omitempty"` // why columns were not deleted
	Asked   bool           `json:"-"`              // the owner was asked to delete them

	Requests []string `json:"requests,omitempty"` // asked for, and not waited for
}

// Done reports whether nothing that was asked for is left to do.
func (r *Repaired) Done() bool {
	for _, t := range r.Tables {
		if t.Repaired != t.Items { // also where the file of differences has lost lines since they were counted
			return false
		}
	}
	for _, f := range r.Foreign {
		if len(f.Left) > 0 {
			return false
		}
	}
	return true
}
