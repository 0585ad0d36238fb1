package archiving

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// errCrash is what a bucket answers to an owner that has crashed meanwhile.
var errCrash = errors.New("the owner has crashed")

// TestOwnerCrashesAtEachStep: whoever goes on creates the same object or finds it, and the same
// manifest.
func TestOwnerCrashesAtEachStep(t *testing.T) {
	crashing := func(w *world, r *run, word string) func(string) error {
		return func(name string) error {
			if !strings.Contains(name, word) {
				return nil
			}
			w.files.hook(nil, nil)
			r.crash()
			return errCrash
		}
	}
	for name, crash := range map[string]func(w *world, r *run, records []ledger.Record){
		"before the intent": func(w *world, r *run, records []ledger.Record) {
			r.store(records[:7])
		},
		"before the object": func(w *world, r *run, records []ledger.Record) {
			w.files.hook(crashing(w, r, "tr_class="), nil)
			r.store(records[:7])
			<-r.done
		},
		"before the object is known": func(w *world, r *run, records []ledger.Record) {
			w.files.hook(nil, crashing(w, r, "tr_class="))
			r.store(records[:7])
			<-r.done
		},
		"behind an object": func(w *world, r *run, records []ledger.Record) {
			r.store(records[:7])
			w.until("an object", func(s *ledger.State) bool { return len(s.Objects) > 0 })
		},
		"before the manifest": func(w *world, r *run, records []ledger.Record) {
			w.files.hook(crashing(w, r, "manifest"), nil)
			r.store(records)
			r.over(0)
			<-r.done
		},
		"before the manifest is known": func(w *world, r *run, records []ledger.Record) {
			w.files.hook(nil, crashing(w, r, "manifest"))
			r.store(records)
			r.over(0)
			<-r.done
		},
		"behind the manifest": func(w *world, r *run, records []ledger.Record) {
			r.store(records)
			r.closed(0)
		},
		"in the middle of a snapshot": func(w *world, r *run, records []ledger.Record) {
			r.store(records[:7])
			r.end()
			wr := w.writer()
			if err := wr.append(w.t.Context(), &ledger.Snapshot{Part: 0, Parts: 2, First: wr.end.Last + 1}); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			records := w.deleted(0, 20)
			r := w.start()
			crash(w, r, records)
			r.end()
			r = w.start()
			r.store(records) // the log does not know how much was stored
			w.proven(r.closed(1))
		})
	}
}
