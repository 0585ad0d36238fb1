package bench

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	cert := certify(b, filepath.Join(dir, "ca.pem"))
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
	writeAccount(b, account, tokens.URL)
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

// certify writes a certificate that is its own authority, and returns it with its key.
func certify(b *testing.B, path string) tls.Certificate {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: googleHosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// writeAccount writes the credentials of a service account that gets its tokens at a URL.
func writeAccount(b *testing.B, path, tokens string) {
	b.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "local", "private_key_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "bench@local.iam.gserviceaccount.com", "client_id": "1", "token_uri": tokens,
	})
	if err := cmp.Or(err, os.WriteFile(path, text, 0o600)); err != nil {
		b.Fatal(err)
	}
}
