package outcome

import (
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// LogRestart logs why the work of a table's life begins again. An append that another entry came before is ordinary:
// that entry is one of a command, such as pause.
func LogRestart(log *zap.Logger, err error) {
	if conn.OutcomeOf(err) == conn.Fenced {
		log.Info("another entry came first: go on behind it")
		return
	}
	log.Warn("outcome unknown: go on from the stored state", zap.Error(err))
}
