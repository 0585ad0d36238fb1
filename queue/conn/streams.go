package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
)

// FormatNumber is that of the streams' layout (names, subjects, configuration) and of dead letters. Rule 11: a newer
// one is refused.
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

// FormatError says which format is needed. It matches ErrNewer.
type FormatError struct {
	What string
	Need int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this build reads up to %d: use a newer replicator", e.What, e.Need, FormatNumber)
}

// Is lets errors.Is(err, ErrNewer) find it.
func (e *FormatError) Is(target error) bool { return target == ErrNewer }

// formingPatience is how long streams are asked for from a cluster that cannot make them yet.
const formingPatience = 15 * time.Second

// CreateStream makes a stream, or opens the one that another process has just made. Processes that start together,
// beside a cluster that is forming, meet streams that are promised and not yet there, and too few servers: such
// errors are retried for a while.
func (c *Conn) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (st jetstream.Stream, err error) {
	forming, cancel := context.WithTimeout(ctx, formingPatience)
	defer cancel()
	for pause := LeastPause; ; pause = min(2*pause, MostPause) {
		asking, done := c.Ask(forming)
		st, err = c.JS.CreateStream(asking, cfg)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			st, err = c.JS.Stream(asking, cfg.Name)
		}
		done()
		passing := Transient(err) || errors.Is(err, jetstream.ErrStreamNotFound) || codeOf(err) == CodeNoPeers
		if err == nil || !passing {
			return st, Explain(err)
		}
		if failure.Pause(forming, pause) != nil {
			return nil, Explain(err)
		}
	}
}
