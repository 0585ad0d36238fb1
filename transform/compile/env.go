package compile

import (
	"encoding/hex"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// env returns what a rule's templates may refer to.
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

// text is a text that is not from the file.
func text(s string) problem.Text { return problem.Text{S: s} }

// literalBytes returns the bytes of a constant: hex behind 0x, else the text itself.
func literalBytes(s string) ([]byte, bool) {
	h, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		return []byte(s), true
	}
	b, err := hex.DecodeString(h)
	return b, err == nil
}
