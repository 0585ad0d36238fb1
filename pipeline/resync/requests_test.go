package resync

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source"
)

// absent reads items that do not exist.
type absent struct{ *table }

func (absent) ReadItems(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	return &source.ItemBatch{Items: make([][]byte, len(keys)), Requested: now(), Answered: now(), At: time.Now()}, nil
}

// TestOutcomeOfManyItemsFitsIntoAMessage: a note for each of thousands of items might not, and an outcome that cannot
// be stored would keep its chunk before all others.
func TestOutcomeOfManyItemsFitsIntoAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		o.Reader, o.Writer = absent{x}, hotRows{x}
		const n = 3 * maxNotes
		var items []request.Item
		for i := range n {
			items = append(items, request.Item{Key: json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))})
		}
		out, err := (&Requests{Options: o}).do(t.Context(), &request.Chunk{What: request.Resync, Items: items})
		if err != nil || out.Hot != n || len(out.Notes) != maxNotes {
			t.Fatalf("%d hot, %d notes, %v", out.Hot, len(out.Notes), err)
		}
	})
}

// hotRows takes nothing, because all items have just changed.
type hotRows struct{ *table }

func (hotRows) Resync(_ context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	return apply.ResyncOutcome{Skipped: 1, Hot: change.Millis(r.Version) + apply.ResyncMargin + 1}, nil
}
