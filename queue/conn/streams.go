package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
)

// FormatNumber is the version of the streams' layout (names, subjects, configuration) and of dead
// letters.
//
// Rule 11: a newer one is refused.
const FormatNumber = 1

// StreamPrefix begins the name of every stream.
const StreamPrefix = "TAILRACE_"

// The keys of a stream's metadata.
const (
	MetaFormat   = "tailrace.format"
	MetaPipeline = "tailrace.pipeline"
	MetaTable    = "tailrace.table"
	MetaToken    = "tailrace.token"
)

// ErrNewer means that something stored was made by a newer format than this build reads.
var ErrNewer = errors.New("log has a newer format")

// FormatError holds the format that is needed. It matches ErrNewer.
type FormatError struct {
	What string
	Need int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this build reads up to %d: use a newer replicator", e.What, e.Need, FormatNumber)
}

// Is lets errors.Is(err, ErrNewer) find it.
func (e *FormatError) Is(target error) bool { return target == ErrNewer }

// createTimeout is how long CreateStream retries while a cluster cannot make streams yet.
const createTimeout = 15 * time.Second

// CreateStream makes a stream, or opens the one that another process has just made. While a cluster
// is forming, it may have too few servers, or refuse a name as taken before it can open the stream
// of that name: such errors are retried for createTimeout.
func (c *Conn) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (st jetstream.Stream, err error) {
	forming, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	for pause := LeastPause; ; pause = min(2*pause, MostPause) {
		asking, done := c.WithAckTimeout(forming)
		st, err = c.JS.CreateStream(asking, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			st, err = c.JS.Stream(asking, cfg.Name)
		}
		done()
		retry := Transient(err) || errors.Is(err, jetstream.ErrStreamNotFound) || codeOf(err) == CodeNoPeers
		if err == nil || !retry {
			return st, Explain(err)
		}
		if failure.Pause(forming, pause) != nil {
			return nil, Explain(err)
		}
	}
}
