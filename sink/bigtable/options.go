package bigtable

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"
)

// Options of a Client. Zero values of the lower half mean the defaults.
type Options struct {
	Project  string
	Instance string
	// AppProfile must route to a single cluster and allow transactional writes, else every write
	// fails with FailedPrecondition. Empty: the instance's default profile.
	AppProfile string
	// CopyProfile is used by copies, resyncs and comparisons. It must route to the cluster of
	// AppProfile and allow transactional writes. Empty: AppProfile.
	CopyProfile string
	// Endpoint of reads and writes, as host.GRPC takes it: with TLS and Google's credentials, or in
	// plain text without credentials, as emulators are spoken to. Empty: $BIGTABLE_EMULATOR_HOST in
	// plain text if set, else the service.
	Endpoint string
	// AdminEndpoint of tables and app profiles. Empty: that of an emulator is Endpoint, else the
	// service's.
	AdminEndpoint string
	TLS           bool   // an endpoint without https:// is spoken to with TLS
	CA            string // PEM file: authorities that are trusted beside the system's
	Universe      string // domain of the service's hosts; default $GOOGLE_CLOUD_UNIVERSE_DOMAIN, then googleapis.com
	// Pipeline is the one to which GuardOf attributes values that do not name theirs. Writes take
	// it from the item.
	Pipeline string
	// Seal seals and opens the guards' values of items with personal data in their key. Nil: writes
	// of such items fail.
	Seal *Sealer
	// Now is the source's clock: the latest Date of DynamoDB, advanced by the monotonic clock. The
	// tombstone gate depends on it, so the local wall clock must not be used. Apply returns an
	// error without it.
	Now func() time.Time

	Timeout     time.Duration // of one attempt of a call; default 10 s
	Tombstones  time.Duration // how long _tr_dead cells are kept; must exceed the longest outage by far; default 168 h
	Concurrency int           // calls in flight per table, at most; default 2048, starting from 32
	Connections int           // at least; default 4 to the service, 1 to an emulator; more as calls in flight need them

	// Report is called with the outcome of each call to a table: nil where the service answered,
	// else why it did not answer or refused the call. It must be fast. It may be nil.
	Report func(table string, err error)
}

// withDefaults returns the options with defaults in place of zero values.
func (o Options) withDefaults() Options {
	if o.CopyProfile == "" {
		o.CopyProfile = o.AppProfile
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Universe == "" {
		o.Universe = cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), googleUniverse)
	}
	if o.Tombstones == 0 {
		o.Tombstones = 7 * 24 * time.Hour
	}
	if o.Concurrency == 0 {
		o.Concurrency = 2048
	}
	if o.Connections == 0 {
		o.Connections = 4
		if o.dataServer().plain {
			o.Connections = 1
		}
	}
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

// check returns an error about values that cannot work, after withDefaults.
func (o Options) check() error {
	switch {
	case o.Project == "" || o.Instance == "":
		return errors.New("project and instance must be set")
	case o.Timeout < 0 || o.Concurrency < 0 || o.Connections < 0:
		return errors.New("time-out, concurrency and connections must be positive")
	case o.TLS && o.dataServer().plain:
		return errors.New("TLS is for an endpoint, which is not set")
	case o.Tombstones < 2*gateMargin:
		return fmt.Errorf("tombstones must be kept for %v or longer, not %v", 2*gateMargin, o.Tombstones)
	}
	return nil
}

// profile returns the app profile of a kind of traffic.
func (o *Options) profile(of traffic) string {
	if of == ofCopy {
		return o.CopyProfile
	}
	return o.AppProfile
}

// gateMargin is the time between the oldest change that is taken and the first tombstone that may
// be collected.
const gateMargin = 24 * time.Hour
