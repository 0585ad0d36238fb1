// Package authtest makes what a server needs in a test to be reached as Google's are: by TLS, with
// the token of a service account.
//
//	certificate := authtest.Certify(t, "ca.pem")
//	authtest.WriteAccount(t, "account.json", tokens.URL)
package authtest

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
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Email is the service account that WriteAccount writes.
const Email = "me@local.iam.gserviceaccount.com"

// Certify writes a certificate of 127.0.0.1 and the hosts that is its own authority, in PEM, and
// returns it with its key.
func Certify(t testing.TB, path string, hosts ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// WriteAccount writes the credentials of a service account that gets its tokens at a URL.
func WriteAccount(t testing.TB, path, tokens string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "local", "private_key_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": Email, "client_id": "1", "token_uri": tokens,
	})
	if err := cmp.Or(err, os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}
