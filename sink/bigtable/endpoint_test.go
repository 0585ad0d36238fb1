package bigtable

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/googleauth/authtest"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

func TestServersOfOptions(t *testing.T) {
	for _, c := range []struct {
		name        string
		o           Options
		emulator    string
		data, admin server
	}{
		{name: "the service", data: server{addr: "bigtable.googleapis.com:443", service: true},
			admin: server{addr: "bigtableadmin.googleapis.com:443", service: true, admin: true}},
		{name: "an emulator of the environment", emulator: "127.0.0.1:1", data: server{addr: "127.0.0.1:1", plain: true},
			admin: server{addr: "127.0.0.1:1", plain: true}},
		{name: "the endpoint goes before the environment", emulator: "127.0.0.1:1",
			o:    Options{Endpoint: "https://b.example", AdminEndpoint: "https://a.example"},
			data: server{addr: "b.example:443"}, admin: server{addr: "a.example:443", admin: true}},
		{name: "an endpoint of rows alone", o: Options{Endpoint: "b.example:8443", TLS: true},
			data:  server{addr: "b.example:8443"},
			admin: server{addr: "bigtableadmin.googleapis.com:443", service: true, admin: true}},
		{name: "a sovereign cloud", o: Options{Universe: "apis.example"},
			data:  server{addr: "bigtable.apis.example:443"},
			admin: server{addr: "bigtableadmin.apis.example:443", admin: true}},
		{name: "an authority of one's own", o: Options{CA: "ca.pem"},
			data:  server{addr: "bigtable.googleapis.com:443"},
			admin: server{addr: "bigtableadmin.googleapis.com:443", admin: true}},
	} {
		t.Setenv("BIGTABLE_EMULATOR_HOST", c.emulator)
		o := c.o.withDefaults()
		if data, admin := o.dataServer(), o.adminServer(); data != c.data || admin != c.admin {
			t.Errorf("%s: rows at %+v, tables at %+v", c.name, data, admin)
		}
	}
}

// TestEndpointWithTLSAndCredentials: rows, reads and tables are reached with TLS and a token of
// Google's usual credentials, and an authority that nobody trusts is an error that names the key.
func TestEndpointWithTLSAndCredentials(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", "") // Google's library would keep a connection to it, unused
	dir := t.TempDir()
	ca, account := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "account.json")
	var tokens atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		tokens.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"t0ken","token_type":"Bearer","expires_in":3600}`)
	}))
	defer issuer.Close()
	authtest.WriteAccount(t, account, issuer.URL)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account)
	front, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = front.Close() }()
	certificate := authtest.Certify(t, ca)
	rows, tables := tunnel(t, certificate, front.Addr()), tunnel(t, certificate, front.Addr())

	o := Options{
		Project: "p", Instance: "i", Pipeline: "shop", Now: time.Now, CA: ca,
		Endpoint: "https://" + rows.addr, AdminEndpoint: "https://" + tables.addr,
	}
	c, err := Open(t.Context(), o, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := c.HasTable(t.Context(), "orders"); err != nil || there {
		t.Errorf("look for a table: %t, %v", there, err)
	}
	if _, err := c.LoadState(t.Context(), "shop", "Orders"); Classify(err) != failure.Missing {
		t.Errorf("read the state: %v, want that its table is missing", err)
	}
	if d, err := c.dataClient(t.Context()); err != nil {
		t.Error(err)
	} else if _, err := d.Open("orders").ReadRow(t.Context(), "x"); status.Code(err) != codes.NotFound {
		t.Errorf("read a row: %v, want that its table is missing", err)
	}
	if _, err := c.Profile(t.Context()); err != nil {
		t.Errorf("read a profile: %v", err)
	}
	if name, err := c.Principal(t.Context()); err != nil || name != authtest.Email {
		t.Errorf("principal %q, %v", name, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if rows.taken.Load() == 0 || tables.taken.Load() == 0 || tokens.Load() == 0 {
		t.Errorf("%d connections for rows, %d for tables, %d tokens", rows.taken.Load(), tables.taken.Load(), tokens.Load())
	}

	for name, change := range map[string]func(){
		"an authority that is missing":        func() { o.CA = filepath.Join(dir, "nowhere.pem") },
		"an authority that is no certificate": func() { o.CA = account },
	} {
		change()
		if _, err := Open(t.Context(), o, zap.NewNop(), nil); !errors.Is(err, errAuthority) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tlsTunnel is a server that takes TLS and passes on what is in it.
type tlsTunnel struct {
	tls.Config
	addr  string
	taken atomic.Int64
}

// tunnel serves TLS before a server that has none.
func tunnel(t *testing.T, certificate tls.Certificate, to string) *tlsTunnel {
	t.Helper()
	x := &tlsTunnel{Config: tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{certificate},
	}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.addr = ln.Addr().String()
	var open sync.WaitGroup
	open.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() { x.pass(raw, to) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		open.Wait()
	})
	return x
}

func (x *tlsTunnel) pass(raw net.Conn, to string) {
	in := tls.Server(raw, &x.Config)
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if in.Handshake() != nil {
		return
	}
	x.taken.Add(1)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	})
	_, _ = io.Copy(in, out)
	_ = in.Close()
	both.Wait()
}
