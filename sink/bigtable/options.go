package bigtable

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Options of a Client. Zero values of the lower half mean the defaults.
type Options struct {
	Project  string
	Instance string
	// AppProfile must route to a single cluster and allow transactional writes, else every write fails
	// with FailedPrecondition. Empty: the instance's default profile.
	AppProfile string
	// Endpoint is the host:port of an emulator, spoken to in plain text without credentials.
	// Empty: $BIGTABLE_EMULATOR_HOST if set, else the service.
	Endpoint string
	// Now is the source's clock: the latest Date of DynamoDB, moved on by the monotonic clock. The tombstone
	// gate rests on it, so the local wall clock will not do. Apply refuses to work without it.
	Now func() time.Time

	Timeout     time.Duration // of one attempt of a call; default 10 s
	Tombstones  time.Duration // H: how long _tr_dead cells are kept; must exceed the longest outage by far; default 168 h
	Concurrency int           // most calls in flight per table; default 256, starting from a quarter
	Connections int           // default 4 to the service, 1 to an emulator

	// Report is told how each call to a table ended: nil where the service answered, else why it did not or why it
	// refuses everything. It must be fast. Nil: nobody wants to know.
	Report func(table string, err error)
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Tombstones == 0 {
		o.Tombstones = 7 * 24 * time.Hour
	}
	if o.Concurrency == 0 {
		o.Concurrency = 256
	}
	if o.Connections == 0 {
		o.Connections = 4
		if o.emulator() != "" {
			o.Connections = 1
		}
	}
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Project == "" || o.Instance == "":
		return errors.New("project and instance must be named")
	case o.Timeout < 0 || o.Concurrency < 0 || o.Connections < 0:
		return errors.New("time-out, concurrency and connections must be positive")
	case o.Tombstones < 2*gateMargin:
		return fmt.Errorf("tombstones must live %v or longer, not %v", 2*gateMargin, o.Tombstones)
	}
	return nil
}

// emulator is the plain-text address to use instead of the service, or "".
func (o Options) emulator() string {
	if o.Endpoint != "" {
		return o.Endpoint
	}
	return os.Getenv("BIGTABLE_EMULATOR_HOST")
}

// gateMargin is kept between the oldest change taken and the first tombstone that may be collected.
const gateMargin = 24 * time.Hour
