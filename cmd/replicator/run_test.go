package main

import (
	"reflect"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

// TestEveryPeriodOfTheConfigurationIsTaken: a key that reaches no period of the pipeline would have no effect.
func TestEveryPeriodOfTheConfigurationIsTaken(t *testing.T) {
	cfg := config.Default()
	written := reflect.ValueOf(&cfg.Testing).Elem()
	for i := range written.NumField() {
		written.Field(i).SetInt(int64(1000 + i))
	}
	d := &daemon{cfg: &cfg}
	taken := map[int64]bool{}
	periods := reflect.ValueOf(d.options(nil, false).Periods)
	for i := range periods.NumField() {
		taken[periods.Field(i).Int()] = true
	}
	for i := range written.NumField() {
		if !taken[int64(1000+i)] {
			t.Errorf("testing.%s reaches no period of the pipeline", written.Type().Field(i).Tag.Get("yaml"))
		}
	}
}

func TestUpgradeReachesThePipeline(t *testing.T) {
	cfg := config.Default()
	for _, upgrade := range []bool{true, false} {
		if d := (&daemon{cfg: &cfg, upgrade: upgrade}); d.options(nil, false).Upgrade != upgrade {
			t.Errorf("run --upgrade=%v does not reach the pipeline", upgrade)
		}
	}
}
