package archiving

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestRandomHistories mixes late deletions, records that are stored again, crashes around what the
// bucket creates, another format, a lost stream, letters, and owners that go on beside the next
// one.
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
		switch random.IntN(9) {
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
			r.store(w.again(0)) // the table's log has those that were not stored, and gives them again in their order
		case 3:
			r.end()
			form := []object.Format{object.Parquet, object.JSONLines}[random.IntN(2)]
			w.edit = func(o *Options) { o.Subject, o.Form.Format = publisher{w}, form }
			r = w.start()
			r.store(w.again(random.IntN(len(w.records) + 1)))
		case 4:
			r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, hour, 1))
			r.store(w.deletedAs(ledger.Keep, transform.ClassUser, hour, 2))
		case 5:
			if random.IntN(3) == 0 {
				w.until("the claim", func(s *ledger.State) bool { return s.Claim.Epoch == w.epoch })
				r.end()
				w.loseStream()
				r = w.start()
				r.store(w.again(0))
			}
		case 6: // letters, of which one is retried later
			if letters := w.deletedAs(ledger.Letter, transform.ClassTTL, hour, 1+random.IntN(2)); r.dying.Err() == nil {
				r.store(letters)
				r.store(w.deleted(hour, 1))
				r.store(w.retried(letters[0].ID()))
			}
		case 7: // another owner, beside one that does not know of it
			r = w.start()
			r.store(w.again(random.IntN(len(w.records) + 1)))
		default:
			r.store(w.deleted(hour, 1+random.IntN(8)))
		}
	}
	r.store(w.again(0))
	w.check(r.closed(hour))
}

// again returns the records from one on as the table's log gives them again: letters that were
// retried are none any more.
func (w *world) again(from int) []ledger.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	records := slices.Clone(w.records[from:])
	for n := range records {
		if records[n].Verdict == ledger.Late {
			records[n].Verdict = ledger.Keep
		}
	}
	return records
}
