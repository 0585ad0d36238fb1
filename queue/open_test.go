package queue

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

func openAt(t *testing.T, url string, edit func(*Options)) (*Queue, error) {
	t.Helper()
	o := Options{Pipeline: "shop", URL: url, MaxBytes: 256 << 20, LettersMaxBytes: 16 << 20}
	if edit != nil {
		edit(&o)
	}
	q, err := Open(testContext(t), o, zap.NewNop(), prometheus.NewRegistry())
	if err == nil {
		t.Cleanup(func() { q.Close() })
	}
	return q, err
}

func TestRefusedConnectionNamesAddressAndCause(t *testing.T) {
	ports := reservePorts(t, 2)
	a, b := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))
	_, err := openAt(t, "nats://user:s3cret@"+a+",nats://"+b, nil)
	if !errors.Is(err, ErrUnreachable) {
		t.Fatalf("open without a server: %v", err)
	}
	for _, want := range []string{a, b, "refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	for _, bad := range []string{"deadline", "s3cret"} {
		if strings.Contains(err.Error(), bad) {
			t.Errorf("%q holds %q", err, bad)
		}
	}
}

func TestWrongPasswordIsDistinguishedFromAnUnreachableServer(t *testing.T) {
	srv := startExternalWith(t, func(o *server.Options) { o.Username, o.Password = "user", "right" })
	if _, err := openAt(t, "nats://user:wr0ng@"+srv.addr(), nil); !errors.Is(err, ErrDenied) ||
		strings.Contains(err.Error(), "wr0ng") {
		t.Fatalf("open with a wrong password: %v", err)
	}
	q, err := openAt(t, "nats://user:right@"+srv.addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if q.Replicas() != 1 {
		t.Errorf("%d copies on a single server where nobody says how many", q.Replicas())
	}
}

// When JetStream refuses a stream, the error names the setting to change.
func TestRefusedStreamNamesTheSetting(t *testing.T) {
	for _, c := range []struct {
		name, want string
		server     func(*server.Options)
		queue      func(*Options)
	}{
		{"copies without a cluster", "queue.replicas", nil, func(o *Options) { o.Replicas = 3 }},
		{"too little storage", "queue.max_bytes", func(o *server.Options) { o.JetStreamMaxStore = 64 << 20 }, nil},
		{"JetStream off", "enable JetStream", func(o *server.Options) { o.JetStream = false }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := openAt(t, "nats://"+startExternalWith(t, c.server).addr(), c.queue)
			if err == nil {
				_, err = q.CreateLog(testContext(t), "Orders", "t0ken")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want the setting %s", err, c.want)
			}
		})
	}
}

// pemFiles makes a certificate authority, and a certificate signed by it for the server on
// 127.0.0.1 and for a client.
func pemFiles(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	save := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	issue := func(of, by *x509.Certificate, byKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if byKey == nil {
			byKey = k
		}
		der, err := x509.CreateCertificate(rand.Reader, of, by, &k.PublicKey, byKey)
		if err != nil {
			t.Fatal(err)
		}
		return der, k
	}
	of := func(serial int64, authority bool) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "tailrace test"},
			NotBefore: time.Now().Add(-time.Hour),
			NotAfter:  time.Now().Add(24 * time.Hour), IsCA: authority, BasicConstraintsValid: true,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
	}
	root := of(1, true)
	rootDER, rootKey := issue(root, root, nil)
	leafDER, leafKey := issue(of(2, false), root, rootKey)
	keyDER, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return save("ca.pem", "CERTIFICATE", rootDER), save("cert.pem", "CERTIFICATE", leafDER),
		save("key.pem", "EC PRIVATE KEY", keyDER)
}

func TestServerThatAsksForACertificateGetsIt(t *testing.T) {
	ca, cert, key := pemFiles(t)
	srv := startExternalWith(t, func(o *server.Options) {
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: ca, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		config.MinVersion = tls.VersionTLS12
		o.TLSConfig, o.TLS, o.TLSTimeout = config, true, 20
	})
	if _, err := openAt(t, "tls://"+srv.addr(), nil); !errors.Is(err, ErrUnreachable) ||
		!strings.Contains(err.Error(), "certificate") {
		t.Fatalf("open without the authority: %v", err)
	}
	q, err := openAt(t, "tls://"+srv.addr(), func(o *Options) { o.CA, o.Cert, o.Key = ca, cert, key })
	if err != nil {
		t.Fatal(err)
	}
	appendPage(t, owned(t, q), 5, 10)
}

// A daemon that starts while the cluster elects waits, and logs that it does.
func TestOpenWaitsForTheElection(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	for name := range c.options {
		c.stop(name)
	}
	// A server that leads, or is handed the lead by one that stops, goes on answering for seconds
	// without the others. One that starts alone never leads.
	c.start(t, "n0")
	core, lines := observer.New(zap.WarnLevel)
	o := c.options["n0"]
	opened := make(chan error, 1)
	go func() {
		q, err := Open(ctx, Options{
			Pipeline: "shop", URL: "nats://" + net.JoinHostPort(o.Host, strconv.Itoa(o.Port)), AckTimeout: time.Second,
		}, zap.New(core), prometheus.NewRegistry())
		if err == nil {
			if q.Replicas() != 3 {
				t.Errorf("%d copies in a cluster where nobody says how many", q.Replicas())
			}
			err = q.Close()
		}
		opened <- err
	}()
	for lines.FilterMessageSnippet("does not answer yet").Len() == 0 {
		select {
		case err := <-opened:
			t.Fatalf("opened without a leader: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, name := range []string{"n1", "n2"} {
		c.start(t, name)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// promised is a cluster in which another process has just made the stream: its name is in use, but
// for a while it cannot be opened.
type promised struct {
	jetstream.JetStream
	few, missing int
}

func (p *promised) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	if p.few--; p.few >= 0 {
		return nil, &jetstream.APIError{Code: 400, ErrorCode: conn.CodeNoPeers,
			Description: "no suitable peers for placement"}
	}
	if p.missing > 0 {
		return nil, jetstream.ErrStreamNameAlreadyInUse
	}
	return p.JetStream.CreateStream(ctx, cfg)
}

func (p *promised) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if p.missing--; p.missing >= 0 {
		return nil, jetstream.ErrStreamNotFound
	}
	return p.JetStream.Stream(ctx, name)
}

func (p *promised) DeleteStream(ctx context.Context, name string) error {
	if p.missing--; p.missing >= 0 {
		return jetstream.ErrStreamNotFound
	}
	return p.JetStream.DeleteStream(ctx, name)
}

// Processes that start together on a new cluster make the same streams: the slower ones wait for
// them.
func TestStreamThatAnotherProcessMakesIsWaitedFor(t *testing.T) {
	q := embeddedQueue(t)
	l := createLog(t, q)
	if _, err := l.DeadLetters(testContext(t)); err != nil {
		t.Fatal(err)
	}
	cluster := &promised{q.conn.JS, 2, 3}
	q.conn.JS = cluster
	createLog(t, q)
	if cluster.few >= 0 || cluster.missing > 0 {
		t.Fatalf("%d, %d refusals were not waited for", cluster.few+1, cluster.missing)
	}
	cluster.missing = 3 // the folder of the stream is there: it is asked for again before one is made
	if _, err := l.DeadLetters(testContext(t)); err != nil || cluster.missing > 0 {
		t.Fatalf("%d refusals were not waited for: %v", cluster.missing, err)
	}
}

// Rule 13: one "stream not found" of a server that loads its streams is no fact.
func TestOneNotFoundIsNoMissingStream(t *testing.T) {
	q := connectTo(t, startExternal(t).addr(), nil)
	l := createLog(t, q)
	ctx := testContext(t)
	openRequests(t, l)
	if _, err := l.DeadLetters(ctx); err != nil {
		t.Fatal(err)
	}
	loading := &promised{JetStream: q.conn.JS}
	q.conn.JS = loading
	for name, ask := range map[string]func() error{
		"requests": func() error { _, err := l.ExistingRequests(ctx); return err },
		"letters":  func() error { _, err := l.ExistingDeadLetters(ctx); return err },
		"room":     func() error { _, err := q.Needs(ctx, []string{l.Table()}); return err },
		"deleting": func() error { return q.Delete(ctx, Kept{What: "log", Stream: l.name}) },
		"log":      func() error { return q.DeleteLog(ctx, l) },
		"token":    func() error { _, err := q.KeptToken(ctx, l.Table()); return err },
	} {
		if loading.missing = 1; name == "room" {
			loading.missing = len(q.opts.limits("")) // they are asked for in any order, and one does not exist
		}
		if err := ask(); !conn.Transient(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEmbeddedStoreTakesMoreLogsThanWereExpected: a selection finds tables while the server runs, and
// each log reserves the room of its limit.
func TestEmbeddedStoreTakesMoreLogsThanWereExpected(t *testing.T) {
	q := embeddedIn(t, t.TempDir(), func(o *Options) { o.Logs, o.MaxBytes = 1, 1<<40 })
	for i := range 20 {
		if _, err := q.CreateLog(t.Context(), "table"+strconv.Itoa(i), "token"); err != nil {
			t.Fatalf("log %d: %v", i, err)
		}
	}
}
