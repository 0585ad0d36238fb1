package config

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// secrets checks the secrets, and warns of those that are written in the file itself.
func (r *report) secrets(c *Config) {
	r.piiSecrets(c)
	if n := r.Value("queue.url"); n == nil || r.Origins[n] != "" {
		return
	}
	for server := range strings.SplitSeq(c.Queue.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil && u.User != nil {
			r.warn("secret", "queue.url",
				`take it from outside, as in url: "${NATS_URL}" or "${file:/run/secrets/nats-url}", or use queue.creds`,
				"a password or token is written in the file")
			return
		}
	}
}

// secretBytes is how long a secret of pii_secrets is: a key of AES-256.
const secretBytes = 32

// piiSecrets checks the secrets that seal keys. No problem repeats a secret.
func (r *report) piiSecrets(c *Config) {
	seen := map[string]int{}
	for i, secret := range c.PIISecrets {
		path := fmt.Sprintf("pii_secrets[%d]", i)
		if r.reported(path) {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(secret)
		switch j, dup := seen[secret]; {
		case err != nil || len(key) != secretBytes:
			r.fault("bad_value", path, "make one with: openssl rand -base64 32",
				"a secret is the base64 of %d bytes", secretBytes)
		case dup:
			r.fault("duplicate", path, "the first secret seals; keep the older ones, each once, behind it",
				"it is the same secret as pii_secrets[%d]", j)
		case r.Origins[r.Value(path)] == "":
			r.warn("secret", path, `take it from outside, as in "${TAILRACE_PII_1}" or "${file:/run/secrets/pii}"`,
				"a secret is written in the file")
		}
		seen[secret] = i
	}
}
