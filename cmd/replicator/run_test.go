package main

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// TestEveryPeriodOfTheConfigurationIsTaken: a key that reaches no period of the pipeline would have no effect.
func TestEveryPeriodOfTheConfigurationIsTaken(t *testing.T) {
	cfg := config.Default()
	written := reflect.ValueOf(&cfg.Testing).Elem()
	for i := range written.NumField() {
		written.Field(i).SetInt(int64(1000 + i))
	}
	d := &replicator{cfg: &cfg}
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

func TestFlagsOfRunReachThePipeline(t *testing.T) {
	cfg := config.Default()
	for want, args := range map[bool][]string{true: {"--adopt"}, false: nil} {
		var o runOptions
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.bind(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := newDaemon(&cfg, o).options(nil, nil).Adopt; got != want {
			t.Errorf("run %v: the pipeline adopts targets: %t", args, got)
		}
	}
}

// TestBackfillOfTheConfigurationIsTaken: a key that reaches no field of the pipeline would have no effect.
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
	o := (&replicator{cfg: &cfg}).options(nil, nil)
	if got := o.Tables[0]; got.Backfill != want || got.OnGap != "heal" || o.Scratch != "/runs" || o.CopyMemory != 7 {
		t.Errorf("%+v, scratch %s, copy memory %d", got, o.Scratch, o.CopyMemory)
	}
}
