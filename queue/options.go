package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// MaxPayload is what the embedded server accepts in one message, and the most that this package
// ever sends.
const MaxPayload = conn.MaxPayload

const (
	defaultMaxBytes   = 20 << 30
	defaultLetters    = 1 << 30
	defaultBlocks     = 128 << 20
	defaultWindow     = time.Hour
	defaultAckTimeout = 5 * time.Second
	defaultIdleCheck  = 5 * time.Second
	defaultDiskCheck  = time.Second
	defaultTTL        = 15 * time.Second
)

// Options set where the logs are stored and how large they may grow.
type Options struct {
	Pipeline string // part of every stream's name: two pipelines never share a log

	// Dir runs the server inside this process, with its store in Dir. Exactly one of Dir and URL is
	// set.
	Dir    string
	Listen string // embedded: host:port for the commands and the nats tool; "" = a random loopback port

	// URL connects to an external server or cluster. It must run with sync_interval: always, or a
	// power cut loses entries that were acknowledged.
	URL string
	// URLNow returns URL as it is now, see conn.Options. Optional.
	URLNow      func() string
	Creds       string // path of a credentials file; it is read again before each connection
	CA          string // path of the certificate authority's certificate, when the system does not trust it
	Cert, Key   string // paths of a client certificate and its key
	Replicas    int    // copies of each stream, 1, 3 or 5; 0 = three in a cluster, one on a single server
	InboxPrefix string // prefix of reply subjects, for accounts that restrict them
	Domain      string // of JetStream, where URL is not a server of it: behind a leaf node

	// MaxBytes is the hard limit of each table's log; 0 = 20 GiB. Reading pauses at 80 % of it.
	MaxBytes int64
	// Logs is the expected number of tables; more may come. The embedded store counts the room that
	// their logs may take.
	Logs int
	// LettersMaxBytes is the hard limit of each table's dead letters; 0 = 1 GiB.
	LettersMaxBytes int64
	// ArchiveMaxBytes is the hard limit of each table's events that are to be archived; 0 = the
	// tables have no archive.
	ArchiveMaxBytes int64
	// BlocksMaxBytes is how much memory the embedded server may take for blocks of logs that were
	// read while they were written; 0 = 128 MiB. Above it the readers of fast logs keep behind.
	BlocksMaxBytes int64
	// ReplayWindow is how long entries stay in the log after every sink has applied them, while
	// there is room. 0 = 1 h, negative = they are trimmed at once.
	ReplayWindow time.Duration

	// AckTimeout bounds the wait for one acknowledgement; after it the outcome is unknown. 0 = 5 s.
	AckTimeout time.Duration
	// DiskCheck is how often Run looks at the embedded store and its volume. 0 = 1 s.
	DiskCheck time.Duration
	// Volume reads the state of the file system that holds Dir; nil = embedded.VolumeOf. Tests
	// replace it to simulate a full disk.
	Volume func(dir string) (embedded.Volume, error)
	// IdleCheck is how often a reader that receives nothing checks that the stream is still the
	// same. 0 = 5 s.
	IdleCheck time.Duration

	// Report is called with the result of each request to the server: nil where it answered,
	// otherwise the error. It must be fast. Optional.
	Report func(op string, err error)

	command bool // OpenClient
}

func (o Options) withDefaults() Options {
	set(&o.MaxBytes, defaultMaxBytes)
	set(&o.LettersMaxBytes, defaultLetters)
	set(&o.BlocksMaxBytes, defaultBlocks)
	set(&o.ReplayWindow, defaultWindow)
	set(&o.AckTimeout, defaultAckTimeout)
	set(&o.IdleCheck, defaultIdleCheck)
	set(&o.DiskCheck, defaultDiskCheck)
	if o.Volume == nil {
		o.Volume = embedded.VolumeOf
	}
	if o.ReplayWindow < 0 {
		o.ReplayWindow = 0
	}
	return o
}

// set sets a value that is zero to its default.
func set[T comparable](v *T, byDefault T) {
	var zero T
	if *v == zero {
		*v = byDefault
	}
}

// check returns the first contradiction in the options.
func (o Options) check() error {
	switch {
	case o.Pipeline == "":
		return errors.New("queue: the pipeline has no name")
	case (o.Dir == "") == (o.URL == ""):
		return errors.New("queue: set either dir (embedded server) or url (external server)")
	case o.Dir != "" && o.Replicas > 1:
		return fmt.Errorf("queue: the embedded server keeps one copy, not %d; replicas need a cluster (url)", o.Replicas)
	case o.MaxBytes < 0 || o.LettersMaxBytes < 0:
		return errors.New("queue: limits must be positive")
	}
	return nil
}

// embedded returns the options of the server in this process.
func (o Options) embedded() embedded.Options {
	return embedded.Options{
		Dir: o.Dir, Listen: o.Listen, MaxBytes: o.MaxBytes, Logs: o.Logs,
		CheckEvery: o.DiskCheck, Volume: o.Volume, Command: o.command,
	}
}
