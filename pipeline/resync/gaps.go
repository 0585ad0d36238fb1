package resync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// HealGaps accepts the gaps that are found and orders a resync that heals them, until ctx ends; nil
// then. It looks for gaps every so often. A gap that is found again before the order is, is ordered
// again: once counts.
func HealGaps(ctx context.Context, l *life.Life, every time.Duration) error {
	for failure.Pause(ctx, every) == nil {
		found := l.Facts()
		if len(found.ToHeal) == 0 {
			continue
		}
		l.Logger.Error("gaps are accepted, and the whole table is resynced because of them",
			zap.Strings("gaps", found.ToHeal))
		order := &checkpoint.Control{Resync: healOrder(found.ToHeal), By: "on_gap", At: l.Now()}
		if err := l.Append(ctx, order); err != nil {
			return err
		}
		if found.Damaged {
			return &outcome.StaleError{Err: errDamageAccepted}
		}
	}
	return nil
}

// errDamageAccepted ends a life, because sinks take from the state with which it begins what damage
// they may pass.
var errDamageAccepted = errors.New("damage in the log is accepted: the sinks begin again")

// healOrder returns the order of a resync that heals gaps. Its id is made from the gaps. So an
// owner orders the same resync if it stores the order again before it has found it in the log.
func healOrder(gaps []string) *checkpoint.ResyncOrder {
	sum := sha256.Sum256([]byte(strings.Join(gaps, " ")))
	return &checkpoint.ResyncOrder{ID: "gap-" + hex.EncodeToString(sum[:5]), Gaps: gaps}
}
