package render

import (
	"fmt"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// Retried is what became of dead letters that were tried again.
type Retried struct {
	Schema  int   `json:"schema"`
	Applied int64 `json:"applied"` // and deleted, or deleted because their item is true without them
	Refused int64 `json:"refused"` // once more; they stay
	Left    int64 `json:"left"`    // not tried, because an earlier letter of their item was refused
	// Later counts the refused and the left items that a retry from RetryAt on deletes: their
	// items are true, and they are only too new.
	Later   int64     `json:"later"`
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// RetriedOf returns what the owners of the tables did.
func RetriedOf(schema int, o *request.Outcome) Retried {
	return Retried{
		Schema: schema, Applied: o.Applied, Refused: o.Refused, Left: o.Waiting, Later: o.Later, RetryAt: o.Until,
	}
}

// Print prints what became of dead letters, and why letters were refused, a line each.
func (r Retried) Print(w io.Writer, notes []request.Note, unreadable []string) {
	refused, left := r.Refused, r.Left
	for _, n := range notes {
		if n.Letter != "" && !n.Until.IsZero() {
			refused--
		}
	}
	left -= r.Later - (r.Refused - refused)
	fmt.Fprintf(w, "%d applied, %d refused again", r.Applied, refused)
	if r.Later > 0 {
		fmt.Fprintf(w, ", %d too new to be deleted yet", r.Later)
	}
	if left > 0 {
		fmt.Fprintf(w, ", %d not tried because an earlier one was refused", left)
	}
	fmt.Fprintln(w, ".")
	for _, n := range notes {
		switch {
		case n.Letter == "":
		case n.Until.IsZero():
			fmt.Fprintf(w, "  %s: %s (%s)\n", n.Letter, n.Reason, n.Code)
		default:
			fmt.Fprintf(w, "  %s: %s (%s); its item is mended: try again at %s\n", n.Letter, n.Reason, n.Code,
				ClockTime(n.Until))
		}
	}
	for _, line := range unreadable {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if r.Later > 0 {
		fmt.Fprintf(w, "next: try again at %s, or add --wait: the items of %s are mended, and the letters are too new to be "+
			"deleted yet\n", ClockTime(r.RetryAt), Count(int(r.Later), "letter"))
	}
	if r.Refused+r.Left > r.Later {
		fmt.Fprintln(w, "next: `replicator dlq show ID` says what was refused; mend the mapping, the family or the item, "+
			"and try again; or `replicator dlq drop ID`")
	}
}

// Resynced is what became of items that were resynced.
type Resynced struct {
	Schema   int      `json:"schema"`
	Table    string   `json:"table"`
	Items    int64    `json:"items"`
	Written  int64    `json:"written"`
	Equal    int64    `json:"equal"`
	Left     int64    `json:"left"`
	Hot      int64    `json:"hot"`
	Letters  int64    `json:"letters"`            // items that are refused
	Unproven int64    `json:"unproven"`           // of a whole table only
	Unowned  int64    `json:"unowned,omitempty"`  // cells that no guard assigns to an item; of a whole table only
	Requests []string `json:"requests,omitempty"` // asked for, and not waited for
}

// ResyncedTable returns what became of the items of a whole table.
func ResyncedTable(schema int, table string, r checkpoint.ResyncResult) Resynced {
	return Resynced{
		Schema: schema, Table: table, Items: r.Items, Written: r.Written, Equal: r.Equal, Left: r.Left, Hot: r.Hot,
		Letters: r.Letters, Unproven: r.Unproven, Unowned: r.Unowned,
	}
}

// ResyncedItems returns what became of single items.
func ResyncedItems(schema int, table string, t *control.RequestTotal) Resynced {
	return Resynced{
		Schema: schema, Table: table, Items: t.Items, Written: t.Written, Equal: t.Equal, Left: t.Left, Hot: t.Hot,
		Letters: t.Refused,
	}
}

// Open returns how many items and cells are not proven equal.
func (r Resynced) Open() int64 { return r.Hot + r.Letters + r.Unproven + r.Unowned }

// Print prints what became of the items.
func (r Resynced) Print(w io.Writer) {
	rows := "rows"
	if r.Left == 1 {
		rows = "row"
	}
	fmt.Fprintf(w, "%s: %s, %d equal, %d written, %d %s left by their item.\n",
		r.Table, Count(int(r.Items), "item"), r.Equal, r.Written, r.Left, rows)
	if n := r.Hot + r.Unproven; n > 0 {
		fmt.Fprintf(w, "  %d change too often to be made equal now: repeat the command later\n", n)
	}
	if r.Unowned > 0 {
		fmt.Fprintf(w, "  no item can be named for %s of a row of several items, so each may be a ghost: "+
			"`replicator verify --differences FILE` names them\n", Count(int(r.Unowned), "cell"))
	}
	if r.Letters > 0 {
		fmt.Fprintf(w, "  %d are refused by the mapping or by Bigtable: `replicator dlq list`\n", r.Letters)
	}
}

// Refused prints why items are refused or hot, by their place in the list: keys may be personal
// data.
func (r Resynced) Refused(w io.Writer, notes []request.Note) {
	for _, n := range notes {
		fmt.Fprintf(w, "  %s: %s\n", n.Code, n.Reason)
	}
}
