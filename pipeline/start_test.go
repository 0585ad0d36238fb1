package pipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// holdIterators keeps back the answers to GetShardIterator after a start until release is called.
// Before that the pipeline asks for one to see whether the service knows AT_TIMESTAMP.
func (w *world) holdIterators() (release func()) {
	held := make(chan struct{})
	w.tables.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".GetShardIterator") &&
				w.logged.FilterMessage("start").Len() > 0 {
				select {
				case <-held:
				case <-req.Context().Done():
					return
				}
			}
			next.ServeHTTP(rw, req)
		})
	})
	return sync.OnceFunc(func() { close(held) })
}

// TestChangesAroundTheFirstStartAreRead: the pages of the copy are read first, then items change,
// and only then are the shards opened. The service cuts the times of those changes to whole
// minutes, so they lie before the start.
func TestChangesAroundTheFirstStartAreRead(t *testing.T) {
	w := newWorld(t)
	w.oldTable(200)
	w.streams.Faults().RecordCut(time.Minute)
	past := w.clock.Now().Sub(w.clock.Now().Truncate(time.Minute))
	w.clock.Advance(90*time.Second - past) // to the middle of a minute
	pages := w.countScans()
	release := w.holdIterators()
	defer release()
	r := w.start("Orders")
	r.hastenUntil("a page of each segment is read", func() bool { return len(pages()) == w.backfill.Segments })
	for i := range 40 {
		pk, sk := fmt.Sprint("p#", i%7), fmt.Sprint("s", i)
		if i%4 == 0 {
			w.delete("Orders", pk, sk)
		} else {
			w.put("Orders", pk, sk, `"v":{"N":"1000"}`)
		}
	}
	release()
	r.copied()
	r.settle()
	r.equal()
}

// TestCopyEndsUnderManyBeats: what was read before the newest beat is not too old for that.
func TestCopyEndsUnderManyBeats(t *testing.T) {
	w := newWorld(t)
	w.oldTable(200)
	w.opts = func(o *pipeline.Options) { o.Periods.Beat = 2 * time.Millisecond }
	r := w.start("Orders")
	w.changeItems("Orders", 3, 60)
	r.copied()
	r.settle()
	r.equal()
}
