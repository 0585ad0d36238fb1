package compile

import (
	"encoding/hex"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// env returns the names and options for a rule's templates.
func (c *compiler) env(r *ir.Rule, segments problem.Text) *tmpl.Env {
	mode := segments.S
	if mode == "" {
		mode = c.Mapping.Segments.S
	}
	if mode == "" {
		mode = tmpl.SegStrict
	}
	return &tmpl.Env{Captures: r.Captures, Keys: c.KeyTypes(), Attrs: true, Segments: mode, Delim: c.Delimiter(),
		Secrets: c.Secrets}
}

// text returns a text without a place in the mapping file.
func text(s string) problem.Text { return problem.Text{S: s} }

// literalBytes returns the bytes of a constant: hex after 0x, otherwise the text itself.
func literalBytes(s string) ([]byte, bool) {
	h, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		return []byte(s), true
	}
	b, err := hex.DecodeString(h)
	return b, err == nil
}
