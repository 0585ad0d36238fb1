package source

import (
	"net/http"
	"strings"
	"time"
)

// Options says where DynamoDB is and how hard to ask. The zero value of a field is its default.
type Options struct {
	Region          string        // empty: from the environment
	Endpoint        string        // of DynamoDB; empty: AWS's own
	StreamsEndpoint string        // empty: Endpoint, unless that is AWS's own
	AssumeRole      string        // ARN of a role to assume; empty: the default chain's credentials as they are
	IdlePoll        time.Duration // between reads of a shard that is idle for seconds: 1s; longer saves CPU and adds lag
	CallTimeout     time.Duration // of one attempt of one call: 15s; shorter than a full page takes means no progress
	Compress        bool          // accept gzip: costs more CPU than the rest of reading; for slow links only
	ReadsPerShard   float64       // GetRecords a second and shard: 5, what AWS serves
	Connections     int           // calls in flight at once, all shards together: 64
	MemoryTotal     int64         // bytes of pages read and not yet released: 96 MiB
	MemoryPerFeed   int64         // the same for one shard: 8 MiB
	Tables          int           // how many are read: 1; any beyond that has no part of the memory to itself, but for one page
	HTTPClient      HTTPClient    // transport in place of the SDK's own; tests with virtual time need one
	Attempts        int           // of a call that may be repeated: 10; commands that a person waits for make fewer

	// Report is told how each call that reading depends on ended: nil where the service answered, else why it did not
	// or why it refuses. It must be fast. Nil: nobody wants to know.
	Report func(op string, err error)
}

// HTTPClient sends a request; *http.Client is one.
type HTTPClient interface {
	Do(*http.Request) (*http.Response, error)
}

func (o Options) withDefaults() Options {
	if o.StreamsEndpoint == "" && !isAWS(o.Endpoint) {
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
	if o.Report == nil {
		o.Report = func(string, error) {}
	}
	return o
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

func isAWS(endpoint string) bool {
	return strings.Contains(endpoint, ".amazonaws.com") || strings.Contains(endpoint, ".api.aws")
}
