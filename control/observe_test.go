package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestStatusHasTheRehearsalsOfTheDaemon: no log holds them.
func TestStatusHasTheRehearsalsOfTheDaemon(t *testing.T) {
	o := &Observer{cfg: &config.Config{Pipeline: "shop"}, daemon: &pipeline.Status{
		Rehearsals: []status.Rehearsed{{Target: "orders", WriteStop: 21}},
	}}
	if s := o.whole(nil); len(s.Rehearsals) != 1 || s.Rehearsals[0].Target != "orders" {
		t.Errorf("%+v", s.Rehearsals)
	}
}

// TestTableBeforeItsFirstRunIsNotToBeRecovered: only where it cannot be looked up whether the table
// had a log, that is a possibility.
func TestTableBeforeItsFirstRunIsNotToBeRecovered(t *testing.T) {
	for _, table := range []config.Table{{Source: "Orders"}, {Source: "Orders", Found: true, Path: "tables[0]"}} {
		for _, err := range []error{nil, errors.New("no answer for 5s")} {
			text := noLog(&table, err)
			if strings.Contains(text, "recover") != (err != nil) || err != nil && !strings.Contains(text, err.Error()) {
				t.Errorf("found %v, %v: %s", table.Found, err, text)
			}
		}
	}
}
