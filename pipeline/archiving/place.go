package archiving

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// Place is where the archives of all tables go. Objects, Subject or both are set.
type Place struct {
	Objects bucket.Bucket
	URL     string // names the place of Objects, as bucket.Place returns it; "": not known
	Form    object.Options
	Subject Publisher
	Once    *Once // shared by all tables; needed with Objects

	Scratch string        // directory in which objects are built; "": the system's
	Roll    time.Duration // how long an event waits for its object at most, where little is deleted
	CutAt   int64         // bytes of events in the stream that make one object
	Letters bool          // when the stream is full, events become dead letters, in place of holding the mark
}

// Once looks whether a bucket creates names only once, until it has found that it does.
type Once struct {
	mu sync.Mutex
	ok bool
}

func (o *Once) probe(ctx context.Context, b bucket.Bucket) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ok {
		return nil
	}
	err := bucket.Probe(ctx, b)
	o.ok = err == nil
	return err
}

// Probe returns nil once it is known that the bucket creates names only once.
func (p *Place) Probe(ctx context.Context) error { return p.Once.probe(ctx, p.Objects) }

// withDefaults sets what is zero.
func (p Place) withDefaults() Place {
	if p.Roll == 0 {
		p.Roll = time.Hour
	}
	if p.CutAt == 0 {
		p.CutAt = 96 << 20
	}
	return p
}

// temporary returns a file without a name: it is gone with the process, however that ends.
func (p *Place) temporary() (*os.File, error) {
	return host.Unnamed(p.Scratch, "archive-*")
}
