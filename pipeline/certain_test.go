package pipeline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/source"
)

// TestNothingIsReadForRowsAtAnUncertainTime: versions of what is read would come from a Date that
// may be wrong. A copy and a repair try again, and read once the time is certain.
func TestNothingIsReadForRowsAtAnUncertainTime(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	for _, skew := range []time.Duration{0, 100 * time.Second, -100 * time.Second} {
		w.Faults.Skew(skew)
		src, err := source.Open(t.Context(), source.Options{
			Region: "us-east-1", Endpoint: w.Endpoint(), DateTrust: time.Hour,
		}, zap.NewNop(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if _, err := src.Table(t.Context(), "Orders"); err != nil {
			t.Fatal(err)
		}
		want := failure.None
		if skew != 0 {
			want = failure.Transient
		}
		reader := certain{src}
		_, err = reader.ScanPage(t.Context(), source.ScanRequest{Table: "Orders", Total: 1})
		if class := source.Classify(err); class != want {
			t.Errorf("a page, the first Date %s ahead: %s: %v", skew, class, err)
		}
		_, err = reader.ReadItems(t.Context(), "Orders", [][]byte{[]byte(`{"pk":{"S":"a"},"sk":{"S":"1"}}`)})
		if class := source.Classify(err); class != want {
			t.Errorf("an item, the first Date %s ahead: %s: %v", skew, class, err)
		}
	}
}
