package shadow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/shadow/front"
)

// services returns the names by which applications reach DynamoDB, and where it is: the first name, or
// the host of the endpoint that the front itself uses.
func services(name, endpoint string) []front.Service {
	_, given, ok := strings.Cut(endpoint, "://")
	if !ok {
		return []front.Service{{Host: name}}
	}
	given = strings.Trim(given, "/")
	if host.AWS(endpoint) && strings.HasPrefix(endpoint, "http://") {
		// It is the application's, in a shell or a pod that both share: behind the front there is
		// TLS.
		endpoint = "https://" + strings.TrimSuffix(given, ":80")
	}
	return []front.Service{{Host: name, Endpoint: endpoint}, {Host: given, Endpoint: endpoint}}
}

// listens reports whether a process listens on an address.
func listens(ctx context.Context, addr string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// reachedAt returns the address by which clients reach a front that listens on one, and whether
// they may be on other machines.
func reachedAt(listening string) (addr string, remote bool) {
	at, err := netip.ParseAddrPort(listening)
	if err != nil {
		return listening, true
	}
	if name, err := os.Hostname(); err == nil && at.Addr().IsUnspecified() {
		return net.JoinHostPort(name, strconv.Itoa(int(at.Port()))), true
	}
	return listening, !at.Addr().Unmap().IsLoopback()
}

// announce returns what the application needs.
func (s *run) announce(name, addr string) string {
	switch {
	case s.o.Mirror:
		return fmt.Sprintf("Copies of requests are taken at http://%s. Ctrl-C ends it, and prints the report.\n", addr)
	case s.o.Sign:
		return fmt.Sprintf(`The front signs and passes requests on. Start the application with this:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s

Ctrl-C ends it, and prints the report.
`, addr)
	}
	return fmt.Sprintf(`The front passes requests on. Start the application with these:

  export AWS_ENDPOINT_URL_DYNAMODB=http://%s
  export HTTP_PROXY=http://%s NO_PROXY=169.254.169.254,169.254.170.2

Ctrl-C ends it, and prints the report.
`, name, addr)
}

// explainFront gives an error of the listener its class and hint.
func explainFront(err error) error {
	if errors.Is(err, host.ErrAddressInUse) {
		return failure.With(failure.Unready, "choose another address with --listen", err)
	}
	return failure.Usagef("--listen 127.0.0.1:8001", "%w", err)
}
