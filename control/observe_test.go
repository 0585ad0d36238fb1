package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

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
