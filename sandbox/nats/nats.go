// Package nats is the sandbox's NATS: a JetStream server in this process that syncs every write to
// disk.
package nats

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startWithin is how long a server may take to recover its directory.
const startWithin = time.Minute

// DefaultMaxPayload is large enough for the record of the largest item that is replaced: two images
// of 400 KB, which in base64 exceed a server's default of 1 MiB.
const DefaultMaxPayload = 8 << 20

// Options configures a server.
type Options struct {
	Addr       string // host:port; port 0 picks one
	Dir        string // where streams are kept; empty: a temporary directory, removed by Close
	MaxPayload int    // bytes of one message; 0 is DefaultMaxPayload
}

// maxStore is how many bytes the limits of all streams may add up to. They are far above what a
// sandbox stores; as a part of the free disk, which is the server's default, a few pipelines would
// be too many for a small machine.
const maxStore = 64 << 30

// Server is a running JetStream server.
type Server struct {
	srv  *server.Server
	temp string
}

// Open starts a server and returns when it takes connections. The caller closes it.
func Open(o Options) (*Server, error) {
	host, port, err := split(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for nats: %w", err)
	}
	s := &Server{}
	if o.Dir == "" {
		if s.temp, err = os.MkdirTemp("", "sandbox-nats-"); err != nil {
			return nil, fmt.Errorf("make directory for nats: %w", err)
		}
		o.Dir = s.temp
	}
	s.srv, err = server.NewServer(&server.Options{
		ServerName: "sandbox", Host: host, Port: port, MaxPayload: int32(cmp.Or(o.MaxPayload, DefaultMaxPayload)),
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: maxStore,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure nats: %w", err), s.remove())
	}
	s.srv.Start()
	if !s.srv.ReadyForConnections(startWithin) {
		return nil, errors.Join(fmt.Errorf("start nats on %s: not ready within %v (is the port taken?)", o.Addr,
			startWithin), s.Close())
	}
	return s, nil
}

// split returns host and port of an address. It listens on a given port once, to return an error if
// the port is taken: the server would end the process. Port 0 is left to the server, because
// another process could take a free port in between.
func split(addr string) (host string, port int, err error) {
	if host, text, err := net.SplitHostPort(addr); err == nil && text == "0" {
		return host, server.RANDOM_PORT, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", 0, err
	}
	if err := l.Close(); err != nil {
		return "", 0, err
	}
	host, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	return host, port, err
}

// URL returns the address for clients: the value of NATS_URL.
func (s *Server) URL() string { return s.srv.ClientURL() }

// Close stops the server and waits until it has ended.
func (s *Server) Close() error {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	return s.remove()
}

// remove removes the temporary directory, if there is one.
func (s *Server) remove() error {
	if s.temp == "" {
		return nil
	}
	return os.RemoveAll(s.temp)
}
