package outcome

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// LogRestart logs why the work of a table's life begins again. An append that another entry came
// before is ordinary: that entry is one of a command, such as pause. Nor is anything unknown when
// what was known is out of date: the row was changed by the owner before, or the pipeline's format
// was raised.
func LogRestart(log *zap.Logger, err error) {
	if conn.OutcomeOf(err) == conn.Fenced {
		log.Info("another entry came first: go on behind it")
		return
	}
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		log.Info("begin again from the stored state", zap.String("why", stale.Error()))
		return
	}
	log.Warn("outcome unknown: go on from the stored state", zap.Error(err))
}

// LogHalt logs why a table is halted, and when it is tried again. It logs nothing for a try that
// ends as the one before; before is its halt, nil if the table worked since. LogHalt reports
// whether it logged something.
func LogHalt(log *zap.Logger, before, h *checkpoint.Halt, retry time.Duration) bool {
	if before != nil && before.Code == h.Code && before.Reason == h.Reason {
		return false
	}
	log.Error("halt the table", zap.String("code", h.Code), zap.String("reason", h.Reason),
		zap.Duration("retry_in", retry))
	return true
}
