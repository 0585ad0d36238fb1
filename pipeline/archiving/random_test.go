package archiving

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestRandomHistories mixes late deletions, records that are stored again, crashes around what the bucket creates,
// another format and a lost stream.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { randomHistory(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func randomHistory(t *testing.T, random *rand.Rand) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Subject = publisher{w} }
	r, hour := w.start(), 0
	for range 15 {
		switch random.IntN(7) {
		case 0:
			hour++
			r.over(hour - 1)
		case 1: // late
			r.store(w.deleted(max(0, hour-1), 1+random.IntN(3)))
		case 2:
			before, after := random.IntN(2) == 0, r.crash
			fail := func(string) error { after(); return errCrash }
			if before {
				w.files.hook(fail, nil)
			} else {
				w.files.hook(nil, fail)
			}
			r.store(w.deleted(hour, 1))
			<-r.done
			w.files.hook(nil, nil)
			r = w.start()
			r.store(w.records) // the table's log has those that were not stored, and gives them again in their order
		case 3:
			r.end()
			form := []object.Format{object.Parquet, object.JSONLines}[random.IntN(2)]
			w.edit = func(o *Options) { o.Subject, o.Form.Format = publisher{w}, form }
			r = w.start()
			r.store(w.records[random.IntN(len(w.records)+1):])
		case 4:
			r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, hour, 1))
			r.store(w.deletedAs(ledger.Keep, transform.ClassUser, hour, 2))
		case 5:
			if random.IntN(3) == 0 {
				w.until("the claim", func(s *ledger.State) bool { return s.Claim.Epoch == w.epoch })
				r.end()
				w.loseStream()
				r = w.start()
				r.store(w.records)
			}
		default:
			r.store(w.deleted(hour, 1+random.IntN(8)))
		}
	}
	r.store(w.records)
	w.check(r.closed(hour))
}
