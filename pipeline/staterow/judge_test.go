package staterow

import (
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// A row that was read in an earlier life refuses nothing: the next life reads it again at once,
// without a halt. A row that this life has read refuses the table, and an unknown one halts it.
func TestRefusalByAnOldRowIsNoHalt(t *testing.T) {
	refused := outcome.Outcome{Action: outcome.Halt, Refused: true}
	halted := outcome.Outcome{Action: outcome.Halt}
	for name, c := range map[string]struct {
		row  *Row
		want outcome.Outcome
	}{
		"read in an earlier life": {&Row{stored: &bigtable.State{}}, outcome.Outcome{Action: outcome.Again}},
		"read in this life":       {&Row{stored: &bigtable.State{}, read: true}, refused},
		"not known":               {&Row{}, halted},
	} {
		if got := c.row.Judge(refused); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
