package ledger_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

var numbers = sequence.New(21, 10)

// filled has item a changed three times (over two shards), b once, and c once while the
// stream was disabled.
func filled() (*ledger.Ledger, []ledger.Delivery) {
	l := ledger.New(numbers)
	var exact []ledger.Delivery
	for i, c := range []ledger.Commit{
		{Item: []byte("a"), Op: "INSERT", Shard: "s1", Seq: 5, Images: 1},
		{Item: []byte("b"), Op: "INSERT", Shard: "s1", Seq: 9, Images: 2},
		{Item: []byte("a"), Op: "MODIFY", Shard: "s1", Seq: 12, Images: 3},
		{Item: []byte("c"), Op: "INSERT"},
		{Item: []byte("a"), Op: "REMOVE", TTL: true, Shard: "s2", Seq: 20, Images: 4},
	} {
		c.Table = "T"
		l.Record(c)
		if c.Shard != "" {
			exact = append(exact, ledger.Delivery{Table: "T", Shard: c.Shard, Seq: numbers.Text(c.Seq),
				Images: uint64(min(i+1, 4))})
		}
	}
	return l, exact
}

func TestVerdictNamesEveryWrongDelivery(t *testing.T) {
	l, exact := filled()
	wrong := slices.Clone(exact)
	wrong[2].Images = 99
	foreign := slices.Clone(exact)
	foreign[1].Shard = "s2"
	for name, c := range map[string]struct {
		deliveries []ledger.Delivery
		want       ledger.Verdict
	}{
		"exact":       {exact, ledger.Verdict{Exact: true}},
		"other items": {[]ledger.Delivery{exact[1], exact[0], exact[2], exact[3]}, ledger.Verdict{Exact: true}},
		"missing":     {exact[:3], ledger.Verdict{Missing: 1}},
		"repeated":    {[]ledger.Delivery{exact[0], exact[0], exact[1], exact[2], exact[3]}, ledger.Verdict{Repeated: 1}},
		"order":       {[]ledger.Delivery{exact[2], exact[0], exact[1], exact[3]}, ledger.Verdict{OutOfOrder: 1}},
		"replay":      {append(slices.Clone(exact), exact[0]), ledger.Verdict{OutOfOrder: 1}},
		"images":      {wrong, ledger.Verdict{Different: 1}},
		"wrong shard": {foreign, ledger.Verdict{Unknown: 1, Missing: 1}},
		"nonsense": {append(slices.Clone(exact), ledger.Delivery{Table: "X", Shard: "s1", Seq: "1"}),
			ledger.Verdict{Unknown: 1}},
		"nothing": {nil, ledger.Verdict{Missing: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Committed, c.want.Delivered, c.want.Unstreamed = 5, len(c.deliveries), 1
			got := l.Check(c.deliveries)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(ledger.Verdict{}, "Examples")); diff != "" {
				t.Errorf("verdict (-want +got):\n%s\n%v", diff, got.Examples)
			}
			if got.Exact == (len(got.Examples) > 0) {
				t.Errorf("examples %v", got.Examples)
			}
		})
	}
}

func TestLedgerSurvivesARestart(t *testing.T) {
	l, exact := filled()
	var file bytes.Buffer
	if err := l.Save(&file); err != nil {
		t.Fatal(err)
	}
	again := ledger.New(sequence.New(30, 5))
	if err := again.Restore(&file); err != nil {
		t.Fatal(err)
	}
	if v := again.Check(exact); !v.Exact {
		t.Errorf("verdict %+v", v)
	}
	var want, got []ledger.Change
	l.Changes("T", func(c ledger.Change) bool { want = append(want, c); return true })
	again.Changes("T", func(c ledger.Change) bool { got = append(got, c); return true })
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 5 || want[4].Count != 3 {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestFingerprintsDistinguishImages(t *testing.T) {
	seen := map[uint64]bool{}
	for _, c := range [][2]string{{"", ""}, {"{}", ""}, {"", "{}"}, {"{}", "{}"}, {`{"a":1}`, "{}"}, {"{}", `{"a":1}`}} {
		seen[ledger.HashImages([]byte(c[0]), []byte(c[1]))] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d fingerprints of 6 pairs", len(seen))
	}
}
