package compile

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"

	"github.com/tailrace-cdc/replicator/transform/ir"
)

// setHash hashes everything that decides a table's cells: the mapping's content with its secrets,
// the table's options, and the row classes, which may change with the other tables of the same
// target.
func (c *compiler) setHash() {
	c.Program.Mapping, c.Program.SecretDigests = c.Mapping, c.digests()
	var classes []ir.Class
	for _, r := range c.Program.Rules {
		for _, pl := range r.Plans {
			classes = append(classes, pl.Class)
		}
	}
	text, err := json.Marshal(struct {
		Mapping     *ir.Mapping
		StripGlobal bool
		OnTTLExpiry string
		Classes     []ir.Class
		Secrets     [][]byte `json:",omitempty"`
	}{c.Mapping, c.Program.Table.StripGlobal, c.Program.DefaultOnTTL(), classes, c.Program.SecretDigests})
	if err != nil {
		c.Problems.Errorf(c.Mapping.At, "syntax", "", "the mapping cannot be written as JSON: %v", err)
	}
	sum := sha256.Sum256(text)
	copy(c.Program.Hash[:], sum[:])
}

// digests returns a keyed hash per secret: it distinguishes sets of secrets without showing them.
// The hash must change with a secret, because rows written with the old one are not found again.
func (c *compiler) digests() (all [][]byte) {
	for _, s := range c.Mapping.Secrets {
		mac := hmac.New(sha256.New, c.Secrets[s.Name])
		mac.Write([]byte("mapping hash"))
		all = append(all, mac.Sum(nil))
	}
	return all
}
