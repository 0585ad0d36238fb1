package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrDenied means that the server does not let this client in: wrong user, password, token or certificate.
var ErrDenied = errors.New("the NATS server refuses these credentials")

// ErrUnreachable means that no server could be connected to.
var ErrUnreachable = errors.New("no server can be reached")

// settings are the keys of the configuration that JetStream's refusals of a stream are about.
var settings = map[jetstream.ErrorCode]string{
	codeNoPeers:               "the cluster has fewer servers with room than queue.replicas asks for: lower it, add servers, or lower queue.max_bytes",
	codeNoReplicas:            "the server is not part of a cluster: set queue.replicas to 1, or give queue.url a cluster",
	codeStorage:               "less than queue.max_bytes and 1 GiB of dead letters is left per table: lower queue.max_bytes, or raise max_file_store of the servers",
	codeNoResources:           "less than queue.max_bytes and 1 GiB of dead letters is left per table: lower queue.max_bytes, or raise max_file_store of the servers",
	codeAccountResources:      "the account's limit of storage is below queue.max_bytes and 1 GiB of dead letters per table: lower queue.max_bytes, or raise the limit",
	codeMaxStreamBytes:        "the account's limit of a stream is below queue.max_bytes: lower that, or raise the limit",
	codeMaxStreams:            "each table needs two streams: raise the account's limit of streams",
	codeNoJetStreamForAccount: "enable JetStream for the account of queue.url or queue.creds",
	codeNoJetStream:           "enable JetStream on the servers of queue.url",
}

// explain adds to a refusal of JetStream which setting it is about.
func explain(err error) error {
	if what, ok := settings[codeOf(err)]; ok {
		return fmt.Errorf("%w: %s", err, what)
	}
	return err
}

// dialer counts the connections, each before anything is sent on it: the client library calls its own handler for
// reconnects later, beside what goes on. It also remembers why servers could not be reached, where the library says
// only that there is none.
type dialer struct {
	net.Dialer
	connection *atomic.Uint64

	mu   sync.Mutex
	errs map[string]error // by address
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err == nil {
		d.connection.Add(1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.errs == nil {
		d.errs = map[string]error{}
	}
	d.errs[address] = err
	return c, err
}

// explain says why a connection was not made.
func (d *dialer) explain(ctx context.Context, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, which may hold a password
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var causes []string
	for _, cause := range d.errs {
		if cause != nil {
			causes = append(causes, cause.Error()) // with the address
		}
	}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("connect to the queue: %w: %w", ErrDenied, err)
	case len(causes) > 0:
		slices.Sort(causes)
		return fmt.Errorf("connect to the queue: %w: %s", ErrUnreachable, strings.Join(causes, "; "))
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return fmt.Errorf("connect to the queue: %w: %w", ErrUnreachable, err)
}
