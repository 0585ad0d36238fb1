package bench

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/tailrace-cdc/replicator/googleauth/authtest"
)

// encrypted is a world in which the daemon reaches DynamoDB and Bigtable as it reaches the services:
// by TLS, with credentials. A proxy stands for the network that leads to Google's hosts.
type encrypted struct {
	dynamodb    string   // URL
	env         []string // of the daemon
	certificate tls.Certificate
	proxy       *tunnel
}

// googleHosts are what the daemon calls there.
var googleHosts = []string{"bigtable.googleapis.com", "bigtableadmin.googleapis.com"}

// encrypt puts TLS before DynamoDB, and makes the certificate for a front of Bigtable and the proxy
// that leads to it, whose address is set later.
func encrypt(b *testing.B, dynamodb string) *encrypted {
	b.Helper()
	dir := b.TempDir()
	cert := authtest.Certify(b, filepath.Join(dir, "ca.pem"), googleHosts...)
	behind, err := url.Parse(dynamodb)
	if err != nil {
		b.Fatal(err)
	}
	tables := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	tables.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	tables.StartTLS()
	b.Cleanup(tables.Close)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
	}))
	b.Cleanup(tokens.Close)
	account := filepath.Join(dir, "account.json")
	authtest.WriteAccount(b, account, tokens.URL)
	proxy := &tunnel{}
	entrance := httptest.NewServer(proxy)
	b.Cleanup(entrance.Close)
	ca := filepath.Join(dir, "ca.pem")
	env := append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "SSL_CERT_FILE="+ca,
		"AWS_CA_BUNDLE="+ca, "GOOGLE_APPLICATION_CREDENTIALS="+account, "HTTPS_PROXY="+entrance.URL, "NO_PROXY=")
	return &encrypted{proxy: proxy, certificate: cert, dynamodb: tables.URL, env: env}
}

// serve makes a front of Bigtable out of what listens.
func (w *encrypted) serve(l net.Listener) net.Listener {
	w.proxy.to = l.Addr().String()
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{w.certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
	})
}

// tunnel answers CONNECT, whatever the host, by a connection to one address.
type tunnel struct{ to string }

func (t *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "not a tunnel", http.StatusBadRequest)
		return
	}
	out, err := net.Dial("tcp", t.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = out.Close() }()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = in.Close() }()
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(out, buffered)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}
