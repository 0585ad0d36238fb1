package bigtable

import (
	"bytes"
	"testing"
	"time"
)

// TestNoteOfALogStandsBesideTheRow: only where the row is, behind no change of it, and an older
// note that arrives late hides no newer one.
func TestNoteOfALogStandsBesideTheRow(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		ctx := t.Context()
		note := func(seq uint64) LogNote {
			return LogNote{Created: present, Seq: seq, Hash: []byte{1, 2, byte(seq)}, At: present.Add(time.Second)}
		}
		newest := func(want uint64) {
			t.Helper()
			n, err := c.LoadLogNote(ctx, "shop", "Products")
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case want == 0 && n != nil:
				t.Errorf("there is a note: %+v", n)
			case want > 0 && (n == nil || n.Seq != want || !n.Created.Equal(present) || !bytes.Equal(n.Hash, note(want).Hash)):
				t.Errorf("%+v, want the note of entry %d", n, want)
			}
		}
		const seq = 1_795_000_000_000_000 // in microseconds, as the sequences of logs begin
		if there, err := c.NoteLog(ctx, "shop", "Products", note(seq)); there || err != nil {
			t.Fatalf("without the row: %t, %v", there, err)
		}
		newest(0)
		s := firstState()
		if err := c.CreateState(ctx, s); err != nil {
			t.Fatal(err)
		}
		for _, n := range []uint64{seq, seq + 1, seq + 90, seq + 5, seq + 90} {
			if there, err := c.NoteLog(ctx, "shop", "Products", note(n)); !there || err != nil {
				t.Fatalf("with the row: %t, %v", there, err)
			}
		}
		newest(seq + 90)
		next := *s
		next.Issued = true
		if err := c.CompareAndSet(ctx, s, &next); err != nil {
			t.Errorf("a note stands in the way of a change: %v", err)
		}
		newest(seq + 90)
		if err := c.RemoveState(ctx, &next); err != nil {
			t.Fatal(err)
		}
		newest(0)
	})
}
