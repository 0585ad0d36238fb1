package nats

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Cluster is three servers that share their streams. They are stopped and started one by one. Its
// methods are for one goroutine.
type Cluster struct {
	options []*server.Options
	servers []*server.Server // nil: stopped
}

// OpenCluster starts three servers with their stores in dir, and returns when one of them leads.
// addrs are six free addresses of this machine: three for the servers among themselves, and three
// for clients. between returns the address at which the others find a server, for tests that put
// something in between; nil: its own.
func OpenCluster(dir string, addrs []string, between func(to int) string) (*Cluster, error) {
	c := &Cluster{servers: make([]*server.Server, 3)}
	found, routes := slices.Clone(addrs[:3]), []string{}
	for i := range found {
		if between != nil {
			found[i] = between(i)
		}
		routes = append(routes, "nats://"+found[i])
	}
	for i := range c.servers {
		host, port, err := split(addrs[3+i])
		if err != nil {
			return nil, fmt.Errorf("listen for nats: %w", err)
		}
		_, peer, err := split(addrs[i])
		if err != nil {
			return nil, fmt.Errorf("listen for nats: %w", err)
		}
		name := fmt.Sprint("n", i)
		c.options = append(c.options, &server.Options{
			ServerName: name, Host: host, Port: port, JetStream: true, StoreDir: filepath.Join(dir, name),
			SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: maxStore, MaxPayload: DefaultMaxPayload,
			Cluster: server.ClusterOpts{Name: "sandbox", Host: host, Port: peer, NoAdvertise: true, Advertise: found[i]},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		})
	}
	for i := range c.servers {
		if err := c.Start(i); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for late := time.Now().Add(startWithin); !c.led(); {
		if time.Now().After(late) {
			return nil, errors.Join(fmt.Errorf("start nats: no leader within %v", startWithin), c.Close())
		}
		<-time.After(20 * time.Millisecond)
	}
	return c, nil
}

// led reports whether all servers take connections and one of them leads.
func (c *Cluster) led() bool {
	led := false
	for _, srv := range c.servers {
		if !srv.ReadyForConnections(time.Millisecond) {
			return false
		}
		led = led || srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == len(c.servers)
	}
	return led
}

// URL returns the addresses of all servers, divided by commas.
func (c *Cluster) URL() string {
	var all []string
	for _, o := range c.options {
		all = append(all, "nats://"+net.JoinHostPort(o.Host, fmt.Sprint(o.Port)))
	}
	return strings.Join(all, ",")
}

// Leader returns the number of the server that leads a stream with a text in its name; -1 where
// none does.
func (c *Cluster) Leader(stream string) int {
	for i, srv := range c.servers {
		if srv == nil {
			continue
		}
		report, err := srv.Jsz(&server.JSzOptions{Streams: true, LeaderOnly: true})
		if err != nil {
			continue
		}
		for _, account := range report.AccountDetails {
			for _, s := range account.Streams {
				if strings.Contains(s.Name, stream) {
					return i
				}
			}
		}
	}
	return -1
}

// Start starts a server, for the first time or again with its store.
func (c *Cluster) Start(i int) error {
	srv, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		return fmt.Errorf("configure nats: %w", err)
	}
	srv.Start()
	c.servers[i] = srv
	return nil
}

// Stop stops a server as a host that is switched off does, and waits until it has ended.
func (c *Cluster) Stop(i int) {
	if srv := c.servers[i]; srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		c.servers[i] = nil
	}
}

// StoreDir returns the directory of a server's store, for tests that damage it while the server is
// stopped.
func (c *Cluster) StoreDir(i int) string { return c.options[i].StoreDir }

// Close stops all servers.
func (c *Cluster) Close() error {
	for i := range c.servers {
		c.Stop(i)
	}
	return nil
}
