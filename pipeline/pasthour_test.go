package pipeline

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
)

// TestChartsGoOnBehindARestart: the next process shows the hour before it; a file that is cut off
// is none.
func TestChartsGoOnBehindARestart(t *testing.T) {
	path, now := filepath.Join(t.TempDir(), "hours", "shop.gob"), time.Now()
	life := func() *Pipeline {
		p := &Pipeline{o: Options{PastHour: path}, log: zap.NewNop()}
		e := &env{Table: Table{Source: "Orders"}}
		p.tables = []*table{{env: e, view: &tableView{env: e, history: latency.NewHistory(new(latency.Histogram), now)}}}
		return p
	}
	hour := map[string][]latency.Point{"Orders": {{At: now.Add(-time.Minute), P99: math.NaN(), Rate: 7}}}
	if err := writeHours(path, hour); err != nil {
		t.Fatal(err)
	}
	p := life()
	p.restoreHours(now)
	if got := p.tables[0].view.history.Hour(); len(got) != 2 || got[0].Rate != 7 || !math.IsNaN(got[0].P99) {
		t.Errorf("%+v", got)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, data[:len(data)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p = life()
	p.restoreHours(now)
	if got := p.tables[0].view.history.Hour(); len(got) > 0 {
		t.Errorf("%+v of half a file", got)
	}
}
