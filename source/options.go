package source

import (
	"net/http"
	"time"

	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Options configure the access to DynamoDB: endpoints, credentials, call rates and memory. The zero
// value of a field is its default.
type Options struct {
	Region          string        // empty: from the environment
	Endpoint        string        // of DynamoDB; empty: AWS's own
	StreamsEndpoint string        // empty: Endpoint, unless that is AWS's own
	S3Endpoint      string        // of the buckets with exports; empty: $AWS_ENDPOINT_URL_S3, or AWS's own
	AssumeRole      string        // ARN of a role to assume; empty: the default chain's credentials as they are
	ExternalID      string        // that the role's trust policy demands; empty: none
	IdlePoll        time.Duration // between reads of a shard idle for ten seconds: 1s; longer saves CPU and adds lag
	CallTimeout     time.Duration // of one attempt of one call: 15s; must exceed the time that a full page takes
	Compress        bool          // accept gzip: costs more CPU than the rest of reading; for slow links only
	ReadsPerShard   float64       // GetRecords calls a second for each shard: 5, what AWS serves
	Connections     int           // calls in flight, all shards together: 64
	MemoryTotal     int64         // bytes of pages read and not yet released: 96 MiB
	MemoryPerFeed   int64         // the same for one shard: 8 MiB
	Tables          int           // tables that are read: 1; further ones get one page of memory each, no share of it
	HTTPClient      HTTPClient    // transport in place of the SDK's own; tests with virtual time need one
	Attempts        int           // of a call that may be repeated: 10; interactive commands make fewer

	// DateTrust is how long Dates that are far from the expected time must advance with it until
	// they are believed: 2 minutes. Below zero they are believed at once; the sandbox's clock jumps
	// in tests.
	DateTrust time.Duration

	// Heartbeats are the keys of the heartbeats of each table that has some, by name. Heartbeats
	// are left out of what is read, and only pages of a stream tell of them.
	Heartbeats map[string]heartbeat.Keys

	// ARNs are those of tables that are not in the account of the credentials, by name. Calls name
	// such a table by its ARN.
	ARNs map[string]string

	// IdlePolls are in place of IdlePoll for tables that have one of their own, by name.
	IdlePolls map[string]time.Duration

	// Report is called with the outcome of each call that reading depends on: nil where the service
	// answered, else why it did not answer or refused the call. It must be fast. It may be nil.
	Report func(op string, err error)
}

// HTTPClient sends a request; *http.Client is one.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

// withDefaults returns the options with defaults in place of zero values.
func (o Options) withDefaults() Options {
	if o.StreamsEndpoint == "" && !host.AWS(o.Endpoint) {
		o.StreamsEndpoint = o.Endpoint
	}
	setDefault(&o.IdlePoll, time.Second)
	setDefault(&o.CallTimeout, 15*time.Second)
	setDefault(&o.ReadsPerShard, 5)
	setDefault(&o.Connections, 64)
	setDefault(&o.MemoryTotal, 96<<20)
	setDefault(&o.MemoryPerFeed, 8<<20)
	setDefault(&o.Tables, 1)
	setDefault(&o.Attempts, 10)
	setDefault(&o.DateTrust, 2*time.Minute)
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

// setDefault stores value in v if v has its zero value.
func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
