package daemon

import (
	"reflect"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestEveryPeriodOfTheConfigurationIsTaken: a key that reaches no period of the pipeline would have
// no effect.
func TestEveryPeriodOfTheConfigurationIsTaken(t *testing.T) {
	cfg := config.Default()
	written := reflect.ValueOf(&cfg.Protocol).Elem()
	for i := range written.NumField() {
		written.Field(i).SetInt(int64(1000 + i))
	}
	d := &Daemon{cfg: &cfg}
	taken := map[int64]bool{}
	periods := reflect.ValueOf(d.options(nil, nil).Periods)
	for i := range periods.NumField() {
		taken[periods.Field(i).Int()] = true
	}
	for i := range written.NumField() {
		key := written.Type().Field(i).Tag.Get("yaml")
		elsewhere := key == "find" || key == "date_trust" // of the packages catalog and source
		if !taken[int64(1000+i)] && !elsewhere {
			t.Errorf("testing.%s reaches no period of the pipeline", key)
		}
	}
}

// TestAdoptionReachesThePipeline: without it a target of another pipeline is refused.
func TestAdoptionReachesThePipeline(t *testing.T) {
	cfg := config.Default()
	for _, adopt := range []bool{true, false} {
		d := &Daemon{cfg: &cfg, o: Options{Adopt: adopt}}
		if got := d.options(nil, nil).Adopt; got != adopt {
			t.Errorf("adopts %t, want %t", got, adopt)
		}
	}
}

// TestTableThatIsPolledSeldomMayBeLater: two of its own idle polls, not of the common one.
func TestTableThatIsPolledSeldomMayBeLater(t *testing.T) {
	cfg := config.Default()
	cfg.Tables = []config.Table{{Source: "A"}, {Source: "B", IdlePoll: config.Duration(time.Minute)}}
	o := (&Daemon{cfg: &cfg}).options(nil, nil)
	if a, b := o.Tables[0].Late, o.Tables[1].Late; a != status.DefaultLate+2*time.Second ||
		b != status.DefaultLate+2*time.Minute {
		t.Errorf("late after %v and %v", a, b)
	}
}

// TestBackfillOfTheConfigurationIsTaken: a key that reaches no field of the pipeline would have no
// effect.
func TestBackfillOfTheConfigurationIsTaken(t *testing.T) {
	cfg := config.Default()
	cfg.Scratch, cfg.Memory.Copy = "/runs", 7
	cfg.Tables = []config.Table{{OnGap: "heal", Backfill: config.Backfill{
		From: "export", ReadUnits: config.Units{Absolute: 1, Percent: 2}, Segments: 3, WriteRows: 4,
		URL: "u", Bucket: "b", Prefix: "p",
	}}}
	want := pipeline.Backfill{
		From: "export", ReadUnits: 1, Percent: 2, Segments: 3, WriteRows: 4, URL: "u", Bucket: "b", Prefix: "p",
	}
	o := (&Daemon{cfg: &cfg}).options(nil, nil)
	if got := o.Tables[0]; got.Backfill != want || got.OnGap != "heal" || o.Scratch != "/runs" || o.CopyMemory != 7 {
		t.Errorf("%+v, scratch %s, copy memory %d", got, o.Scratch, o.CopyMemory)
	}
}

// TestCallsInWorkLetADefaultTableReachMaxInFlight: a quarter more are in work than in flight, and
// with fewer the bound that Bigtable allows would not be reached, and so not grow.
func TestCallsInWorkLetADefaultTableReachMaxInFlight(t *testing.T) {
	cfg := config.Default()
	d := &Daemon{cfg: &cfg}
	if got, want := d.options(nil, nil).Calls, cfg.Bigtable.MaxInFlight*5/4; got < want {
		t.Errorf("%d calls in work, want at least %d", got, want)
	}
}
