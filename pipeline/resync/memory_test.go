package resync

import (
	"bytes"
	"context"
	"encoding/base64"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// stout is a table whose items have a random text each, which cannot be compressed.
type stout struct {
	*table
	size int
}

func (x stout) ScanPage(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	pg, err := x.table.ScanPage(ctx, r)
	if err != nil {
		return nil, err
	}
	for i, item := range pg.Items {
		text := make([]byte, x.size*3/4)
		_, _ = rand.NewChaCha8([32]byte{byte(r.Segment), byte(i)}).Read(text)
		value := `{"S":"` + base64.StdEncoding.EncodeToString(text) + `"}`
		pg.Items[i] = bytes.Replace(item, []byte(`{"N":"1"}`), []byte(value), 1)
	}
	return pg, nil
}

// TestMemoryOfManySegmentsIsBounded: 64 segments are read while nothing is proven, so that each
// page waits in memory.
// Rule 9: no more of them are read than fit.
func TestMemoryOfManySegmentsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, size = 8 << 20, 64 << 10
		x := newTable(t, 64, 28)
		o := x.options()
		o.Reader, o.Memory = stout{x, size}, NewMemory(limit)
		proven := make(chan struct{})
		x.prove = func(context.Context, change.Millis) error { <-proven; return nil }
		ended := make(chan error, 1)
		go func() { ended <- New(o, x.state()).Run(t.Context()) }()
		_ = failure.Pause(t.Context(), 5*time.Second) // virtual: a page takes 10 ms
		x.mu.Lock()
		read := 0
		for _, n := range x.reads {
			read += n
		}
		x.mu.Unlock()
		if held := read * x.pageSize * size; held > limit || held < limit/2 {
			t.Errorf("%d pages of %d bytes wait in memory, of %d", read, x.pageSize*size, limit)
		}
		close(proven)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		x.complete()
	})
}
