package render

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// Letter is a dead letter with its item as it is now, which is read only if data is shown.
type Letter struct {
	deadletter.Summary
	Next   string          `json:"next,omitempty"` // the command that explains the item
	Item   json.RawMessage `json:"item,omitempty"`
	Absent bool            `json:"absent,omitempty"` // the table has no such item now
	Unread string          `json:"unread,omitempty"` // why the item could not be read
}

// Print prints the letter, with data the key, the item and the record too.
func (l *Letter) Print(w io.Writer, data bool) {
	fmt.Fprintf(w, "%s: %s of %s, version %d, key hash %s\n", l.ID, letterOf(&l.Summary), l.Table, l.Version, l.KeyHash)
	fmt.Fprintf(w, "  refused for %s: %s (%s)\n", l.Sink, l.Reason, l.Code)
	fmt.Fprintf(w, "  first %s, retried %s, last %s\n", Time(l.FirstSeen), Count(l.Attempts, "time"), Time(l.LastTried))
	if l.Shard != "" {
		fmt.Fprintf(w, "  shard %s\n", l.Shard)
	}
	if !data {
		fmt.Fprintln(w, "  --show-data prints the key and the item")
		return
	}
	switch {
	case l.Keys == nil:
		fmt.Fprintln(w, "  the letter names no key")
	case l.Absent:
		fmt.Fprintf(w, "  key   %s\n  item  there is no such item now\n", l.Keys)
	case l.Unread != "":
		fmt.Fprintf(w, "  key   %s\n  item  cannot be read now: %s\n", l.Keys, l.Unread)
	default:
		fmt.Fprintf(w, "  key   %s\n  item  %s\n", l.Keys, l.Item)
	}
	if l.Next != "" {
		fmt.Fprintf(w, "  next: %s\n", l.Next)
	}
	if len(l.Record) > 0 {
		fmt.Fprintf(w, "%s\n", l.Record)
	}
}

// letterOf names what a letter holds.
func letterOf(l *deadletter.Summary) string {
	switch {
	case l.Copy != "":
		return "item that copy " + l.Copy + " read"
	case l.Code == deadletter.CodeUnreadable:
		return "letter that cannot be read"
	}
	return l.Op
}
