package source

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tailrace-cdc/replicator/change"
)

// TestWhatTheServiceChargesIsCounted: replies of GetRecords, also those without records and those
// that are dropped for want of memory; refused calls are none.
func TestWhatTheServiceChargesIsCounted(t *testing.T) {
	w := newWire()
	w.shard("a", "", 3)
	s := open(t, w)
	r := s.NewReader(start("a", change.Position{}))
	defer r.Close()
	next(t, r).Release() // three records
	next(t, r).Release() // none
	refused := 2
	w.script = func(c wireCall) *wireReply {
		if c.op != "GetRecords" || refused == 0 {
			return nil
		}
		refused--
		return refuse("ProvisionedThroughputExceededException", "slow down")
	}
	next(t, r).Release()
	if got := s.Reads("T"); got.Charged != 3 || got.Failed != 2 {
		t.Errorf("%+v, want 3 that are charged and 2 that failed", got)
	}
	if got := testutil.ToFloat64(s.metrics.charged.WithLabelValues("T")); got != 3 {
		t.Errorf("tailrace_source_stream_reads_total is %v", got)
	}
	if got := s.Reads("U"); got != (Reads{}) {
		t.Errorf("another table: %+v", got)
	}
}

// TestReadUnitsOfATableAreCounted: of scans and of single items, with what a second call costs.
func TestReadUnitsOfATableAreCounted(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Tab")
	var keys [][]byte
	for i := range 200 {
		w.put(t, info.Name, i)
		keys = append(keys, fmt.Appendf(nil, `{"pk":{"S":"%d"},"n":{"N":"%d"}}`, i%50, i%3))
	}
	want := 0.0
	for page, err := range w.Scan(t.Context(), "Tab", 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		want += page.Units
	}
	batch, err := w.ReadItems(t.Context(), "Tab", keys[:90])
	if err != nil {
		t.Fatal(err)
	}
	if want += batch.Units; want == 0 || batch.Units == 0 {
		t.Fatalf("%v units, %v of them for items", want, batch.Units)
	}
	if got := w.Reads("Tab").Units; got != want {
		t.Errorf("%v units, want %v", got, want)
	}
	if got := testutil.ToFloat64(w.metrics.units.WithLabelValues("Tab")); got != want {
		t.Errorf("tailrace_source_read_units_total is %v, want %v", got, want)
	}
}
