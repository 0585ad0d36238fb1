package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// authorities returns Mozilla's certificate authorities as PEM blocks. Those that Mozilla trusts
// only for certificates issued before some date are left out: a PEM file cannot hold that
// condition.
func authorities() ([]byte, error) {
	var buf bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		c, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		fmt.Fprintf(&buf, "# %s\n", c.Subject)
		if err := pem.Encode(&buf, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}
