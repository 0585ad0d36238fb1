package certificate

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// ReadKey reads the private key with which certificates are signed: PEM, as `openssl genpkey
// -algorithm ed25519` writes it.
func ReadKey(path string) (ed25519.PrivateKey, error) {
	block, err := readPEM(path, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("read private key %s: %w", path, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read private key %s: not an Ed25519 key", path)
	}
	return own, nil
}

// ReadPublicKey reads the key that a certificate must be signed with: PEM, as `openssl pkey
// -pubout` writes it.
func ReadPublicKey(path string) (ed25519.PublicKey, error) {
	block, err := readPEM(path, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, fmt.Errorf("read public key %s: %w", path, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("read public key %s: not an Ed25519 key", path)
	}
	return public, nil
}

var errNoPEM = errors.New("not a PEM file")

// readPEM returns the content of the first block of a PEM file, which must be of the kind that is
// wanted.
func readPEM(path, want string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("read key %s: %w", path, errNoPEM)
	}
	if block.Type != want {
		return nil, fmt.Errorf("read key %s: it holds a %s, and a %s is needed", path, block.Type, want)
	}
	return block.Bytes, nil
}
