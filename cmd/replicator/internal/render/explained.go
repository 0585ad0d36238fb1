package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/explain"
)

// Item prints what is known of an item; the verdict comes last.
func Item(w io.Writer, x *explain.Item) {
	fmt.Fprintf(w, "Item %s of table %s", x.Key, x.Table)
	if x.Absent {
		fmt.Fprintf(w, ": there is none (read %s)\n", Time(x.Read))
	} else {
		fmt.Fprintf(w, ": %s (read %s)\n", Count(len(x.Attributes), "attribute"), Time(x.Read))
		printAttributes(w, x.Attributes)
		if x.Image != nil {
			fmt.Fprintf(w, "  %s\n", x.Image)
		}
		fmt.Fprintf(w, "\n%s\n", Explain(x.Target, x.Steps))
	}
	printStored(w, x)
	if x.Log != nil {
		printLog(w, x.Log)
		printBeside(w, x)
	}
	for _, u := range x.Unknown {
		fmt.Fprintf(w, "\nNot looked at: %s\n", u)
	}
	printVerdict(w, &x.Verdict)
}

// printVerdict prints the verdict, which comes last, and what to do.
func printVerdict(w io.Writer, v *explain.Verdict) {
	fmt.Fprintf(w, "\n%s\n", v.Sentence)
	if v.Next != "" {
		fmt.Fprintf(w, "  next: %s\n", v.Next)
	}
}

func printAttributes(w io.Writer, list []explain.Attribute) {
	var parts []string
	for _, a := range list {
		parts = append(parts, fmt.Sprintf("%s (%s, %s)", a.Name, a.Type, Count(a.Bytes, "byte")))
	}
	fmt.Fprintf(w, "  %s\n", strings.Join(parts, ", "))
}

// printStored prints the rows in Bigtable.
func printStored(w io.Writer, x *explain.Item) {
	for i := range x.Stored {
		r := &x.Stored[i]
		fmt.Fprintf(w, "\nIn Bigtable, row %s of %s: %s\n", r.Row, x.Target, aboutRow(r, x.Absent))
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, c := range r.Cells {
			fmt.Fprintf(t, "  %s:%s\t%s\t%s\t%s\n", c.Family, c.Qualifier, c.State, versionText(c.Version), contentOf(&c))
		}
		_ = t.Flush()
		if c := r.Refused; c != nil {
			fmt.Fprintf(w, "  the change at version %s was refused, so the row is as before it: %s (`replicator dlq show %s`)\n",
				versionText(c.Version), c.Reason, c.Letter)
		}
		if r.Others > 0 {
			fmt.Fprintf(w, "  and %s of other items, or of no item: see explain --row\n", Count(r.Others, "cell"))
		}
	}
	if len(x.Stored) == 0 && x.Log != nil {
		fmt.Fprintf(w, "\nIn Bigtable: nothing of the item in the rows that its key, its changes and its letters name.\n")
	}
}

// aboutRow returns whether the row holds the item.
func aboutRow(r *explain.StoredRow, absent bool) string {
	var parts []string
	switch {
	case r.Missing:
		return "there is no such row"
	case r.Guard > 0:
		parts = append(parts, "it holds the item at version "+versionText(r.Guard))
	case r.Sealed:
		parts = append(parts, "it has a guard, perhaps the item's, that is sealed with a secret which is not configured")
	case r.Deleted == 0:
		parts = append(parts, "it does not hold the item")
	}
	if r.Deleted > 0 {
		parts = append(parts, "the item was taken out of it at version "+versionText(r.Deleted))
	}
	outdated := func(c explain.StoredCell) bool { return c.State == explain.CellOutdated }
	switch {
	case slices.ContainsFunc(r.Cells, outdated):
		parts = append(parts, "the mapping refuses the item as it is now")
	case !r.Wanted && absent:
		parts = append(parts, "there is no such item now")
	case !r.Wanted:
		parts = append(parts, "the mapping does not give it to the item now")
	}
	return strings.Join(parts, "; ")
}

// contentOf returns the value of a cell, or its size, and what the item has instead.
func contentOf(c *explain.StoredCell) string {
	text := Count(c.Bytes, "byte")
	switch {
	case c.State == explain.CellMissing || c.State == explain.CellAged && c.Bytes == 0:
		text = ""
	case c.Value != "":
		text = "= " + c.Value
	}
	if c.Outside {
		text += "  another writer wrote it, after the replicator"
	}
	if c.Want != "" {
		text += "  the item says " + c.Want
	}
	return strings.TrimSpace(text)
}

// printLog prints the changes of the item in the log.
func printLog(w io.Writer, l *explain.History) {
	reach := "nothing of it is trimmed"
	if l.Trimmed && l.Oldest != nil {
		reach = "what was stored before " + Time(*l.Oldest) + " is trimmed"
	}
	fmt.Fprintf(w, "\nIn the log, entries %d to %d, %s: %s of the item", l.First, l.Last, reach,
		Count(l.Changes, "change"))
	if n := len(l.Entries); n < l.Changes {
		fmt.Fprintf(w, ", the newest %d", n)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range l.Entries {
		op, applied := c.Op, "not applied yet"
		if c.TTL {
			op += " by TTL"
		}
		var parts []string
		if len(c.Applied) > 0 {
			parts = append(parts, "applied by "+strings.Join(c.Applied, ", "))
		}
		if len(c.Refused) > 0 {
			parts = append(parts, "refused by "+strings.Join(c.Refused, ", "))
		}
		if c.BehindFence {
			parts = append(parts, "behind the fence")
		}
		if len(parts) > 0 {
			applied = strings.Join(parts, ", ")
		}
		fmt.Fprintf(t, "  entry %d\t%s\t%s\t%s\t%s\n", c.Seq, op, versionText(c.Version), applied, c.Shard)
	}
	_ = t.Flush()
}

// printBeside prints dead letters and requests.
func printBeside(w io.Writer, x *explain.Item) {
	fmt.Fprintln(w)
	for _, l := range x.Letters {
		fmt.Fprintf(w, "Dead letter %s: %s at version %d, refused by %s: %s (%s)\n", l.ID, letterOf(&l), l.Version, l.Sink,
			l.Reason, l.Code)
	}
	if len(x.Letters) == 0 {
		fmt.Fprintln(w, "No dead letters of it.")
	}
	for _, r := range x.Requests {
		fmt.Fprintf(w, "Request %s waits since %s: %s, asked by %s\n", r.ID, Time(r.Asked), r.What, r.By)
	}
	if len(x.Requests) == 0 {
		fmt.Fprintln(w, "No requests for it.")
	}
}

// Row prints the owner of each cell of a row; the verdict comes last.
func Row(w io.Writer, x *explain.Row) {
	if x.Missing {
		fmt.Fprintf(w, "Row %s of %s: there is no such row\n", x.Row, x.Target)
	} else {
		fmt.Fprintf(w, "Row %s of %s: %s, %s\n", x.Row, x.Target, Count(len(x.Items), "item"),
			Count(len(x.Cells), "cell"))
	}
	for i := range x.Items {
		printItemOf(w, i, &x.Items[i])
	}
	for _, o := range x.Others {
		fmt.Fprintf(w, "\nAlso in the row: %s\n", o)
	}
	if len(x.Cells) > 0 {
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range x.Cells {
		value := Count(c.Bytes, "byte")
		if c.Value != "" {
			value = "= " + c.Value
		}
		fmt.Fprintf(t, "  %s:%s\t%s\t%s\t%s\n", c.Family, c.Qualifier, ownerOf(&c), versionText(c.Version), value)
	}
	_ = t.Flush()
	for _, u := range x.Unknown {
		fmt.Fprintf(w, "\nNot looked at: %s\n", u)
	}
	printVerdict(w, &x.Verdict)
}

// printItemOf prints an item of a row.
func printItemOf(w io.Writer, i int, it *explain.RowItem) {
	name := "key hash " + it.KeyHash + " (--show-data names the key)"
	if it.Key != nil {
		name = string(it.Key)
	}
	fmt.Fprintf(w, "\nItem %d: %s of table %s\n", i+1, name, it.Table)
	if it.Guard > 0 {
		fmt.Fprintf(w, "  the row holds it at version %s\n", versionText(it.Guard))
	}
	if it.Deleted > 0 {
		fmt.Fprintf(w, "  it was taken out of the row at version %s\n", versionText(it.Deleted))
	}
	if it.ByKey {
		fmt.Fprintln(w, "  the row has nothing of it; the row's key names it, and no other item of the table can be there")
	}
	if it.Absent {
		fmt.Fprintln(w, "  the table has no such item")
	}
	switch {
	case it.Back != nil:
		fmt.Fprintf(w, "  its cells turn back into %s\n", it.Back)
	case it.Attributes != nil:
		fmt.Fprintf(w, "  its cells turn back into an item of %s:\n  ", Count(len(it.Attributes), "attribute"))
		printAttributes(w, it.Attributes)
	}
	switch {
	case it.Attributes != nil && it.NoWayBack != "":
		fmt.Fprintf(w, "    as far as they show it: %s\n", it.NoWayBack)
	case it.NoWayBack != "":
		fmt.Fprintf(w, "  it cannot be turned back: %s\n", it.NoWayBack)
	}
	fmt.Fprintf(w, "  %s\n", it.Verdict.Sentence)
}

// ownerOf names the owner of a cell.
func ownerOf(c *explain.OwnedCell) string {
	switch c.Owner {
	case explain.OwnedByItem:
		return fmt.Sprintf("item %d", c.Item+1)
	case explain.OwnedByNobody:
		return "foreign: no item of the row can own it"
	case explain.OwnedByAnother:
		return "of a table that is not configured"
	}
	return c.Owner + ": " + c.Why
}

// versionText returns a version with the time that it stands for; "" for none.
func versionText(v change.Version) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%d (%s)", v, Time(v2time(v)))
}

func v2time(v change.Version) time.Time { return change.Millis(v).Time() }
