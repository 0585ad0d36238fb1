package bigtable

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/transform"
)

// sealer makes a Sealer of secrets that consist of one repeated byte each.
func sealer(t testing.TB, secrets ...byte) *Sealer {
	t.Helper()
	var texts []string
	for _, b := range secrets {
		texts = append(texts, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)))
	}
	s, err := NewSealer(texts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sealed makes the item of a write one whose key is personal data.
func sealed(w *transform.Write) *transform.Write {
	w.Item.Sealed = true
	return w
}

// guardValues returns the values of a client's guards by row.
func guardValues(t testing.TB, c *Client) map[string][]byte {
	t.Helper()
	got := map[string][]byte{}
	views := []View{{transform.LiveFamily, 1}, {transform.DeadFamily, 1}}
	err := c.Rows(t.Context(), target, "", "", views, func(r *Row) error {
		for _, cell := range r.Cells {
			got[string(r.Key)] = cell.Value
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestKeyThatIsPersonalDataIsSealedInTheGuard(t *testing.T) {
	c, f := rig(t, func(o *Options) { o.Seal, o.Pipeline = sealer(t, 1), "shop" })
	mustApply(t, c, sealed(own("ann@example.com", 1, "x", "1")))
	value := guardValues(t, c)["ann@example.com"]
	if bytes.Contains(value, []byte("ann")) || len(value) == 0 {
		t.Fatalf("the guard shows the key: %q", value)
	}
	key := string(item("ann@example.com").Key)
	both := open(t, f.addr, func(o *Options) { o.Seal = sealer(t, 2, 1) })
	if g, err := both.GuardOf(value, []byte("ann@example.com"), exclusiveQualifier); err != nil ||
		string(g.Key) != key || g.Pipeline != "shop" || !g.Sealed {
		t.Errorf("opened with the second secret: %+v, %v", g, err)
	}
	other := open(t, f.addr, func(o *Options) { o.Seal = sealer(t, 2) })
	if g, err := other.GuardOf(value, []byte("ann@example.com"), exclusiveQualifier); err != nil || !g.Unknown {
		t.Errorf("without its secret: %+v, %v", g, err)
	}
	// A write with another secret is guarded by the same cell: only its time decides.
	if err := other.Apply(t.Context(), target, sealed(own("ann@example.com", 1, "x", "2"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"ann@example.com d:x": "1"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPersonalKeyIsNeverWrittenInClear(t *testing.T) {
	c, f := rig(t)
	if err := c.Apply(t.Context(), target, sealed(own("ann@example.com", 1, "x", "1"))); !errors.Is(err, errNoSecret) ||
		!strings.Contains(err.Error(), "pii_secrets") {
		t.Errorf("apply without a secret: %v", err)
	}
	if f.count() != 0 {
		t.Error("the row was sent")
	}
}

// TestGuardsOfBothFormsInOneTable is a table that was written without pii, and then with it.
func TestGuardsOfBothFormsInOneTable(t *testing.T) {
	c, _ := rig(t, func(o *Options) { o.Seal, o.Pipeline = sealer(t, 1), "shop" })
	mustApply(t, c, own("one", 1, "x", "1"), own("two", 1, "x", "1"), sealed(own("three", 1, "x", "1")))
	for row, value := range guardValues(t, c) {
		g, err := c.GuardOf(value, []byte(row), exclusiveQualifier)
		want := Guard{Pipeline: "shop", Table: "Products", Key: item(row).Key, Sealed: row == "three"}
		if diff := cmp.Diff(want, g); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", row, err, diff)
		}
	}
	// The form of an earlier guard does not matter to the next write.
	mustApply(t, c, own("one", 2, "x", "2"), sealed(own("two", 1, "x", "2")))
	want := map[string]string{"one d:x": "2", "two d:x": "1", "three d:x": "1"}
	if diff := cmp.Diff(want, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
