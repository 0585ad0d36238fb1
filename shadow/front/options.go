package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

// Mode is how applications reach the front.
type Mode uint8

// The modes. Keep takes the requests that a client sends to an HTTP proxy, and keeps their
// signatures. Sign takes requests for the front's own address, and replaces their signatures.
// Mirror takes copies of requests, and answers 204.
const (
	Keep Mode = iota
	Sign
	Mirror
)

// Service is where the requests for one name go.
type Service struct {
	Host     string // as requests name it, such as dynamodb.eu-west-1.amazonaws.com; a port of 80 is left out
	Endpoint string // https://host or http://host, each with or without a port; empty: https://Host
}

// Signer signs a request to DynamoDB: it sets the fields Authorization, X-Amz-Date and, for
// temporary credentials, X-Amz-Security-Token. hash is the SHA-256 of the body in hex.
type Signer func(ctx context.Context, r *http.Request, hash string) error

// Options configure a front.
type Options struct {
	Listen   string // host:port
	Mode     Mode
	Services []Service // Keep: requests for other names are refused. Sign: all requests go to the first
	Sign     Signer    // Sign: required

	Tap    func(*exchange.Exchange) // may block: exchanges are dropped meanwhile. nil: none are taken
	Share  float64                  // of the exchanges that Tap gets, from 0 to 1
	Memory int64                    // bytes of exchanges under way and waiting for Tap; default 32 MiB
	// Answers: Tap gets the bodies of answers too. Else it gets their sizes, and saves the copies.
	Answers bool

	TLS   *tls.Config   // to the service; nil: the system's authorities
	Dial  time.Duration // until a connection to the service is given up: 5s
	Drain time.Duration // for open exchanges, when Run ends: 30s. Then they are cut
}

// service is a Service as connections are made to it.
type service struct {
	host []byte // as requests name it
	addr string // host:port
	name string // the field Host of requests that the front signs
	tls  *tls.Config
}

// check sets defaults, and returns the services, or why the options cannot be used.
func (o *Options) check() (all []*service, err error) {
	if o.Memory == 0 {
		o.Memory = 32 << 20
	}
	if o.Dial == 0 {
		o.Dial = 5 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	if o.Tap == nil {
		o.Share = 0
	}
	switch {
	case !(o.Share >= 0 && o.Share <= 1): // as NaN
		return nil, fmt.Errorf("a share of %v is not between 0 and 1", o.Share)
	case o.Mode == Mirror:
		return nil, nil
	case len(o.Services) == 0:
		return nil, errors.New("no service is given")
	case o.Mode == Sign && o.Sign == nil:
		return nil, errors.New("no signer is given")
	case o.Mode == Sign && !loopback(o.Listen):
		return nil, fmt.Errorf("a front that signs gives its permissions to each client that reaches it: it listens on "+
			"loopback only, and %s is not", o.Listen)
	}
	for _, given := range o.Services {
		s, err := o.service(given)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", given.Host, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// service returns how connections are made to a service.
func (o *Options) service(given Service) (*service, error) {
	if given.Endpoint == "" {
		given.Endpoint = "https://" + given.Host
	}
	u, err := url.Parse(given.Endpoint)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("its endpoint is not https://host or http://host")
	}
	s := &service{host: withoutPort(given.Host), name: u.Host}
	port := u.Port()
	switch u.Scheme {
	case "https":
		if port == "" {
			port = "443"
		}
		if s.tls = o.TLS.Clone(); s.tls == nil {
			s.tls = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0), MinVersion: tls.VersionTLS12}
		}
		if s.tls.ServerName == "" {
			s.tls.ServerName = u.Hostname()
		}
	case "http":
		if port == "" {
			port = "80"
		}
	default:
		return nil, errors.New("its endpoint is not https://host or http://host")
	}
	s.addr = net.JoinHostPort(u.Hostname(), port)
	return s, nil
}

// loopback reports whether an address is one of this machine alone.
func loopback(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
